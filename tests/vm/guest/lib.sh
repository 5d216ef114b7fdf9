# What every test of the guest shares: fixtures first, then assertions. Sourced by dash.
# shellcheck shell=dash disable=SC2034
results=/run/results
helper=/usr/libexec/nfsrahead
rules=/etc/udev/rules.d/99-nfs.rules

# ---- fixtures

# start_server [SIZE]: of the memory, for what is exported. The pseudo root is a real one (no export has fsid=0), so an NFSv4
# mount walks it level by level, each with a device of its own.
start_server() {
    modprobe -a nfsd nfs nfsv3 nfsv4 fuse veth sch_netem
    mount -t nfsd nfsd /proc/fs/nfsd
    mkdir -p /run/rpc_pipefs && mount -t rpc_pipefs sunrpc /run/rpc_pipefs
    mount -t tmpfs -o size="${1:-50%}" srv /srv
    mkdir -p /srv/a /srv/b /srv/d1/d2/d3/a /srv/outer
    mount -t tmpfs outer /srv/outer
    mkdir -p /srv/outer/inner
    mount -t tmpfs inner /srv/outer/inner
    mkdir -p /srv/a/sub /srv/outer/inner/deep
    cat >/etc/exports <<EXPORTS
/srv/a *(rw,no_root_squash,no_subtree_check,insecure,fsid=11)
/srv/b *(rw,no_root_squash,no_subtree_check,insecure,fsid=12)
/srv/d1/d2/d3/a *(rw,no_root_squash,no_subtree_check,insecure,fsid=13)
/srv/outer *(rw,no_root_squash,no_subtree_check,insecure,fsid=14,crossmnt)
/srv/outer/inner *(rw,no_root_squash,no_subtree_check,insecure,fsid=15)
EXPORTS
    rpcbind -w || rpcbind
    chown -R statd /var/lib/nfs/sm /var/lib/nfs/sm.bak
    rpc.statd --no-notify
    exportfs -ra
    # Fifty NFSv3 mounts leave hundreds of reserved ports in TIME_WAIT, and the next fifty would wait for them.
    echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
    # Without a client tracker the grace period would hold the first open.
    echo 10 >/proc/fs/nfsd/nfsv4leasetime
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    [ -z "${max_block_kib:-}" ] || echo $((max_block_kib * 1024)) >/proc/fs/nfsd/max_block_size
    rpc.nfsd 8
    rpc.mountd --no-udp || rpc.mountd
    echo Y >/proc/fs/nfsd/v4_end_grace
}

# As systemd-udevd.service runs it: a mount namespace of its own that sees what is mounted outside.
start_udev() {
    mount --make-rshared /
    unshare -m --propagation slave /usr/lib/systemd/systemd-udevd --daemon
    wait_for 10 test -S /run/udev/control
    rule ours
    conf </vm/nfs.conf
}

# rule ours|stock|debian|peer|none: which 99-nfs.rules udev has; stock is nfs-utils' rule with our program
rule() {
    case $1 in
    ours) cp /vm/99-nfs.rules "$rules" ;;
    stock) stock_rule "$helper" ;;
    debian) stock_rule /opt/debian/nfsrahead ;;
    peer) stock_rule /opt/peer/nfsrahead ;;
    none) rm -f "$rules" ;;
    esac
    udevadm control --reload
}

stock_rule() {
    echo "SUBSYSTEM==\"bdi\", ACTION==\"add\", PROGRAM=\"$1 %k\", ATTR{read_ahead_kb}=\"%c\"" >"$rules"
}

# conf <TEXT: nfs.conf
conf() { cat >/etc/nfs.conf; }

# nfs OPTIONS EXPORT [MOUNT_POINT]: mount from the guest's own server
nfs() {
    mkdir -p "${3:-/mnt/x}"
    mount -t nfs -o "$1" "127.0.0.1:$2" "${3:-/mnt/x}"
}

# hold TARGET SECONDS: returns when there is an NFSv4 superblock that gets its mount SECONDS later ("-": goes without one);
# its device is then in /run/held, and holder is the process
hold() {
    mkdir -p /mnt/h
    rm -f /run/held
    fsmount 127.0.0.1:/srv/a vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,nosharecache "$1" "$2" >/run/held &
    holder=$!
    wait_for 20 test -s /run/held
}

# delay MS: one way, so a round trip over lo pays it twice
delay() { tc qdisc replace dev lo root netem delay "${1}ms" limit 100000; }

# at_once N OPTIONS EXPORT: N mounts at the same time
at_once() {
    local i pids=
    for i in $(seq "$1"); do
        nfs "$2" "$3" "/mnt/many/$i" &
        pids="$pids $!"
    done
    # shellcheck disable=SC2086 # a list
    wait $pids
}

# A second server in a network namespace of its own, 10.9.0.2 behind veth-client: it can be cut off.
second_server_up() {
    ip netns add server2
    ip link add veth-client type veth peer name veth-server netns server2
    ip addr add 10.9.0.1/24 dev veth-client
    ip link set veth-client up
    ip -n server2 addr add 10.9.0.2/24 dev veth-server
    ip -n server2 link set veth-server up
    ip -n server2 link set lo up
    # A host name of its own, or NFSv4.1 takes it for the first server.
    unshare -m -u --propagation private nsenter --net=/run/netns/server2 sh -c '
        hostname server2
        mount -t tmpfs run /run
        mount -t tmpfs state /var/lib/nfs
        mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/v4recovery /run/rpcbind
        mount -t proc proc /proc
        mount -t nfsd nfsd /proc/fs/nfsd
        echo 10 >/proc/fs/nfsd/nfsv4leasetime
        echo 10 >/proc/fs/nfsd/nfsv4gracetime
        rpcbind
        exportfs -ra
        rpc.nfsd 16
        rpc.mountd'
}
second_server_down() {
    nsenter --net=/run/netns/server2 unshare -m --propagation private sh -c '
        mount -t proc proc /proc && mount -t nfsd nfsd /proc/fs/nfsd && rpc.nfsd 0'
    # shellcheck disable=SC2046 # a list
    kill $(ip netns pids server2)
    ip link del veth-client
    ip netns del server2
}

# watch: from here on the kernel counts helpers that it starts (runs) and backing devices that it registers (devices)
watch() {
    cd /sys/kernel/tracing || return
    echo >trace
    echo 'filename ~ "*nfsrahead"' >events/sched/sched_process_exec/filter
    echo 1 >events/sched/sched_process_exec/enable
    echo 1 >events/writeback/writeback_bdi_register/enable
    cd /
}
runs() { grep -c sched_process_exec: /sys/kernel/tracing/trace; }
devices() { grep -c writeback_bdi_register: /sys/kernel/tracing/trace; }

# What a benchmark has left in an export: its own file, or what NFS keeps of one that is open still.
left_in() { find "$1" \( -name '.nfstune-bench-*' -o -name '.nfs0*' \); }

settle() { udevadm settle -t 100; }

unmount_all() {
    umount -a -t nfs,nfs4,fuse 2>/dev/null
    wait_for 10 no_nfs
}
no_nfs() { ! nfs_lines | grep -q . && [ -z "$(anonymous)" ]; }

# Back to what every test may expect; fails if a mount or a device stays.
reset() {
    tc qdisc del dev lo root 2>/dev/null
    unmount_all || { umount -l -a -t nfs,nfs4,fuse; nfs_lines; anonymous; return 1; }
    settle
    : >/etc/fstab
    conf </vm/nfs.conf
    rule ours
}

# ---- the run

# argument NAME: its value on the kernel's command line
argument() { sed -n "s/.*$1=\([^ ]*\).*/\1/p" /proc/cmdline; }

# run_tests LIBRARY [SECONDS]: those that the command line names, each in a shell of its own with LIBRARY read; then the tally
run_tests() {
    local tally pair
    export library="$1"
    for pair in $(argument vmset | tr , ' '); do export "${pair?}"; done
    for test in $(argument vmtest | tr , ' '); do
        export test
        echo "=== $test"
        # A test that hangs costs its own result, not those of the others.
        # By the name dash: busybox's timeout would run its own sh, and that its own mount, ip and tc.
        # shellcheck disable=SC2016 # for the inner shell to expand
        timeout -s KILL "${2:-400}" dash -c '. "$library" && . "/vm/$test.sh"' || not_ok "came to its end"
        reset || not_ok "left nothing behind"
    done
    # One write, so that the host never sees half a tally.
    tally=$(awk '/^ok /{p++} /^NOT ok /{f++} /^SKIP /{s++} END{print "tally", p+0, f+0, s+0}' "$results")
    say "$tally"
}

# ---- questions

now_ms() { cut -d' ' -f1 /proc/uptime | tr -d . | sed 's/$/0/'; }

nfs_lines() { grep -E ' - nfs4? ' /proc/self/mountinfo; }

# The anonymous backing devices: NFS and FUSE, nothing else that the guest has.
anonymous() { (cd /sys/class/bdi && ls -d 0:* 2>/dev/null); }

dev_of() { mountpoint -d "$1"; }

# count_set WANT: how many NFS mounts have it
count_set() {
    local dev got n=0
    for dev in $(nfs_lines | cut -d' ' -f3); do
        read -r got <"/sys/class/bdi/$dev/read_ahead_kb"
        [ "$got" != "$1" ] || n=$((n + 1))
    done
    echo "$n"
}

dev_value() { cat "/sys/class/bdi/$1/read_ahead_kb"; }

# value [MOUNT_POINT]: its read_ahead_kb once udev has nothing left to do
value() {
    settle
    dev_value "$(dev_of "${1:-/mnt/x}")"
}

xprts() { awk -v mnt="$1" '$1 == "device" { on = $5 == mnt } on && $1 == "xprt:" { n++ } END { print n + 0 }' /proc/self/mountstats; }

# settle_ms: how long udev still takes, from now
settle_ms() { took_ms settle; }

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# thrice COMMAND...: its three outputs, a line each
thrice() { "$@" && "$@" && "$@"; }

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
    local tries=$(($1 * 20))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.05
    done
}

# took_ms COMMAND...
took_ms() {
    local from
    from=$(now_ms)
    "$@"
    echo $(($(now_ms) - from))
}

# ---- assertions

say() {
    echo "[$(cut -d' ' -f1 /proc/uptime)] $1"
    echo "$1" >/dev/ttyS1
}
note() { say "# $1"; }
outcome() {
    echo "$1" >>"$results"
    say "$1"
}
ok() { outcome "ok - $test: $1"; }
not_ok() { outcome "NOT ok - $test: $1"; }
skip() { outcome "SKIP - $test: $1"; }

# holds WHAT COMMAND...: it ends well
holds() {
    local what=$1
    shift
    if "$@"; then ok "$what"; else not_ok "$what"; fi
}

# is WHAT GOT WANT
is() { if [ "$2" = "$3" ]; then ok "$1 ($2)"; else not_ok "$1: got '$2', want '$3'"; fi; }

# at_most WHAT GOT LIMIT
at_most() { if [ "$2" -le "$3" ]; then ok "$1 ($2 <= $3)"; else not_ok "$1: got $2, limit $3"; fi; }

# costs WHAT LIMIT WITHOUT WITH: files with the times of a few runs each, in ms. The medians may differ by LIMIT, and by what
# the runs without differ among themselves: that is how much this machine is disturbed.
costs() {
    local noise
    noise=$(sort -n "$3" | sed -n '1p;$p' | awk 'NR == 1 { low = $1 } END { print $1 - low }')
    at_most "$1, ms more than without a rule" $(($(median <"$4") - $(median <"$3"))) $(($2 + noise))
}
