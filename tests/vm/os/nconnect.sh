# How many connections: what a sweep finds, what the live rules of nfstuned say during a run with one, and whether it was right.
# Three ways that are slow for another reason each: a limit of each connection, the server's disk, lost packets.
# shellcheck shell=dash
server=10.9.0.2
flow_mbit=80 way_mbit=320
mkdir -p /mnt/x /mnt/y /srv/slow
modprobe -a sch_fq sch_tbf sch_netem
mount -o ro /dev/vdb /srv/slow
echo '/srv/slow *(ro,no_root_squash,no_subtree_check,insecure,fsid=21)' >>/etc/exports
# In memory, as the disk of the guest has little room.
mount -t tmpfs -o size=60% served /srv/a
dd if=/dev/urandom of=/srv/a/big bs=1M count=64 2>/dev/null
for i in 1 2 3 4 5 6 7 8; do echo "$i" >"/srv/a/small$i"; done
second_server_up

# both_ways COMMAND...: on the client's end (at veth-client) and on the server's
both_ways() {
    at=veth-client && in='' && "$@"
    at=veth-server && in='ip netns exec server2' && "$@"
}
# shellcheck disable=SC2154 # both_ways sets in and at
{
    each_connection() {
        $in tc qdisc replace dev "$at" root handle 1: tbf rate ${way_mbit}mbit burst 256k latency 200ms
        $in tc qdisc replace dev "$at" parent 1:1 handle 2: fq maxrate ${flow_mbit}mbit
    }
    losing() { $in tc qdisc replace dev "$at" root netem delay 1ms loss 2% limit 10000; }
    open_way() { $in tc qdisc del dev "$at" root 2>/dev/null; }
}

# from_server EXPORT DIRECTORY [OPTION]: attributes are asked for each time, so that small requests are seen
from_server() { mount -t nfs -o "vers=4.2,actimeo=0${3:+,$3}" "$server:$1" "$2"; }
# looking N: so many who look at small files, until load_ends
looking() {
    touch /run/load
    for i in $(seq "$1"); do
        (while [ -e /run/load ]; do
            stat "/mnt/x/small$i" >/dev/null
            sleep 0.05
        done) &
    done
}
# reading N FILE PART_MIB [BYTES]: so many readers, past the client's cache, each its own part of the file, over and over
reading() {
    for i in $(seq "$1"); do
        (while [ -e /run/load ]; do
            dd if="$2" of=/dev/null bs="${4:-1M}" iflag=direct,skip_bytes,count_bytes skip=$(((i - 1) * $3))M count="$3M" 2>/dev/null
        done) &
    done
}
writing() {
    (while [ -e /run/load ]; do dd if=/dev/zero of=/mnt/x/written bs=1M count=16 oflag=direct 2>/dev/null; done) &
}
load_ends() {
    rm -f /run/load
    wait
    rm -f /srv/a/written
}
# quiet SECONDS: what the mount is like when next to nothing happens
quiet() {
    looking 4
    (while [ -e /run/load ]; do dd if=/mnt/x/big of=/dev/null bs=64k count=1 iflag=direct 2>/dev/null; sleep 0.2; done) &
    sleep "$1"
    load_ends
}
watch_anew() {
    daemon_stop
    rm -rf /var/lib/nfstuned
    daemon_start <<END
[nfstuned]
interval = 5
END
}
# field EXPRESSION: of the daemon's advice as JSON, where `of(KIND)` is a list
field() {
    nfstune advise --server $server --json | python3 -c "
import json, sys
all = json.load(sys.stdin)
of = lambda kind: [advice for advice in all['advice'] if advice['kind'] == kind]
print($1)"
}
wanted() { field "next((a['connections_wanted'] for a in all['advice'] if (a['connections_wanted'] or 0) > a['connections']), 'none')"; }
kinds() { field "' '.join(sorted(a['kind'] for a in all['advice']))"; }
busy() { field "all['clients'][0]['busy_intervals']"; }
is_busy() { [ "$(busy)" -ge "$1" ]; }
# seen: what the rules saw, for the console
seen() {
    daemon_stop
    python3 -c "
import json
for client in json.load(open('/var/lib/nfstuned/history.json'))['clients'].values():
    for seen in client['busy']:
        print(seen['rules'], {k: round(v, 5) for k, v in seen['window'].items() if v is not None})
    print({k: [round(v, 6) for _, v in client[k]] for k in ('per_connection', 'small_rtt_s', 'data_rtt_s')}, client['carried'])"
}
# as_if_tried: three busy hours are long; as if all but a few seconds of them were over
as_if_tried() {
    daemon_stop
    sed -i 's/"busy_milliseconds": *[0-9]*/"busy_milliseconds": 10790000/' /var/lib/nfstuned/advice.json
    systemctl start nfstuned
}
history_says() { nfstune advice history | grep -q "$1"; }
show() { nfstune advise --server $server | while read -r line; do note "$line"; done; }

note "each connection has $flow_mbit Mbit/s, the way $way_mbit"
both_ways each_connection
nfstune bench nconnect $server:/srv/a --options vers=4.2 --values 1,2,4,8 --budget 150s --csv >/run/rows 2>/run/said || not_ok "a bench: $(tail -n 1 /run/said)"
from_server /srv/a /mnt/x
rsize=$(sed -n 's/.* \/mnt\/x .*rsize=\([0-9]*\).*/\1/p' /proc/self/mounts)
nfstune sweep --rsize "$rsize" --json /run/rows >/run/swept
note "nconnect  reads MB/s  writes MB/s (16 requests in flight)"
awk -F, 'NR > 1 && $4 >= deepest[$2] { deepest[$2] = $4 }
    NR > 1 { sum[$2, $1, $4] += $5; n[$2, $1, $4]++ }
    END {
        split("1 2 4 8", values, " ")
        for (i = 1; i <= 4; i++) {
            v = values[i]; r = deepest["read"]; w = deepest["write"]
            printf "%8d %11.1f %12.1f\n", v, sum["read", v, r] / n["read", v, r] / 1e6, sum["write", v, w] / n["write", v, w] / 1e6
        }
    }' /run/rows >/run/table
while read -r line; do note "$line"; done </run/table
swept=$(python3 -c "
import json
for advice in json.load(open('/run/swept'))['advice']:
    if advice['direction'] == 'read': print(*advice['try'] or [advice['leave']])")
best=$(awk '$2 > most { most = $2 } { rate[$1] = $2 } END { for (v in rate) if (rate[v] >= 0.95 * most) print v }' /run/table | sort -n)
note "within 5 % of the best: $(echo "$best" | paste -sd ' ')"
is "the sweep says" "$swept" "$(echo "$best" | head -n 1)"

watch_anew
quiet 17
looking 8
reading 4 /mnt/x/big 16
holds "ten busy intervals" wait_for 90 is_busy 10
show
is "the live rules say the same" "$(wanted)" "$swept"
load_ends

note "asked for"
echo "$server:/srv/b /mnt/y nfs4 vers=4.2,nconnect=8 0 0" >>/etc/fstab
mount /mnt/y
is "/mnt/y has the connections of the first mount" "$(xprts /mnt/y)" 1
is_asked() { kinds | grep -q asked; }
holds "that is found" wait_for 15 is_asked
note "$(field "of('asked')[0]['title']")"
umount /mnt/x /mnt/y

note "tried: 4"
from_server /srv/a /mnt/x nconnect=4
looking 8
reading 8 /mnt/x/big 8
holds "it is being tried" wait_for 40 history_says 'being tried'
as_if_tried
holds "it helped" wait_for 40 history_says 'it helped'
holds "ten busy intervals" wait_for 90 is_busy 10
show

note "what nfs-utils' own tools make of four connections"
# Each of them keeps the last of a mount's four lines.
sends() { nfstune metrics | awk '/^nfstune_client_sends_total/ && /10.9.0.2/ { print $NF }'; }
ours_before=$(sends)
theirs=$(mountstats --rpc /mnt/x | sed -n 's/^ *\([0-9]*\) RPC requests sent.*/\1/p')
ours_after=$(sends)
# The same from the other side of the table: each operation counts its own requests.
by_operation=$(awk '$1 == "device" { on = / mounted on \/mnt\/x / } on && ops && $1 ~ /:$/ { sum += $3 } /per-op statistics/ { ops = 1 } $1 == "device" { ops = 0 } END { print sum }' /proc/self/mountstats)
note "requests sent: ours $ours_before to $ours_after, by operation $by_operation; mountstats $theirs"
at_most "mountstats counts one connection: percent of ours" $((100 * theirs / ours_before)) 40
at_most "ours counts all: percent of those by operation, at least 95" 95 $((100 * ours_after / by_operation))
# READ_PLUS (NFSv4.2, RFC 7862) reads too.
reads() { awk '$1 == "device" { on = / mounted on \/mnt\/x / } on && ($1 == "READ:" || $1 == "READ_PLUS:") { n += $2 } END { print n }' /proc/self/mountstats; }
reads_before=$(reads)
took=$(took_ms eval 'nfsiostat 5 2 /mnt/x >/run/theirs')
reads=$((($(reads) - reads_before) * 1000 / took))
cat /run/theirs
read -r all theirs <<END
$(awk '/rpc bklog/ { getline; all = $1 } /^read:/ { getline; reads = $1 } END { printf "%d %d\n", all, reads }' /run/theirs)
END
note "a second: $reads reads; nfsiostat says $all requests, of them $theirs reads"
at_most "nfsiostat counts one connection: its requests, of half the reads" "$all" "$((reads / 2))"
load_ends
seen
umount /mnt/x

note "tried: 8"
systemctl start nfstuned
from_server /srv/a /mnt/x nconnect=8
looking 8
reading 8 /mnt/x/big 8
holds "it is being tried" wait_for 40 history_says 'being tried'
as_if_tried
holds "it did not help" wait_for 40 history_says 'did not help'
nfstune advice history | while read -r line; do note "$line"; done
load_ends
umount /mnt/x
from_server /srv/a /mnt/x nconnect=4
looking 8
reading 4 /mnt/x/big 16
holds "ten busy intervals" wait_for 90 is_busy 10
is "and is not said again" "$(wanted)" none
load_ends
umount /mnt/x
sed -i '/srv/d' /etc/fstab

note "the server's disk is slow"
both_ways open_way
watch_anew
from_server /srv/a /mnt/x
from_server /srv/slow /mnt/y
quiet 17
looking 8
reading 3 /mnt/x/big 20
sleep 16
load_ends
looking 8
reading 3 /mnt/y/big 50 64k
says() { kinds | grep -q "$1"; }
holds "the server is found" wait_for 120 says server
show
is "it will not help" "$(kinds)" server
is "and is not advised" "$(wanted)" none
load_ends
seen
umount /mnt/x /mnt/y

note "the way loses packets"
both_ways losing
watch_anew
from_server /srv/a /mnt/x
quiet 17
looking 8
reading 4 /mnt/x/big 16
writing
holds "ten busy intervals" wait_for 90 is_busy 10
show
is "the network is to be mended" "$(kinds)" "loss-elsewhere lossy-path"
is "and nothing else is advised" "$(wanted)" none
load_ends
seen
umount /mnt/x

both_ways open_way
umount /srv/slow
second_server_down
