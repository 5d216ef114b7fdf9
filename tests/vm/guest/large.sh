# A rule for a mount point costs the same with ten mounts and with 50,000 where the kernel lists the newest mounts first.
# shellcheck shell=dash
runs=20

# In a mount namespace of its own, with a real NFS mount that is younger than all the others.
cat >/run/large.sh <<'INSIDE'
. /vm/lib.sh
mounts() { wc -l </proc/self/mountinfo; }
# helper_ms <CONFIGURATION: what $runs calls take, as udev would make them
helper_ms() {
    conf
    dev=$(dev_of /mnt/young)
    took_ms calls
}
calls() {
    for _ in $(seq "$runs"); do
        # Each has to write.
        echo 128 >"/sys/class/bdi/$dev/read_ahead_kb"
        SEQNUM=1 $helper -F --write "$dev" || echo "helper failed" >&2
    done
}
# What else the host does only adds to a time.
least() { sort -n | head -n 1; }
by_type() { printf '[nfsrahead]\nnfs4 = 2000\n' | helper_ms; }
by_path() { printf '[nfsrahead]\n[nfsrahead "/mnt/young"]\nnfs4 = 4000\n' | helper_ms; }
young() { nfs vers=4.2,nosharecache /srv/a /mnt/young; }
young
echo "few $(mounts) $({ thrice by_type && thrice by_type; } | least) $(thrice by_path | least)"
umount /mnt/young
mkdir -p /many
mount -t tmpfs many /many
copies=0
# Each step mounts the whole tree once more below itself.
while [ "$(mounts)" -lt 50000 ]; do
    copies=$((copies + 1))
    mkdir "/many/$copies"
    mount --rbind /many "/many/$copies"
done
young
echo "many $(mounts) $({ thrice by_type && thrice by_type; } | least) $(thrice by_path | least)"
echo "value $(dev_value "$(dev_of /mnt/young)")"
umount /mnt/young
INSIDE

# A rule of udev's would do the same work in between.
rule none
unshare -m --propagation private env "runs=$runs" sh /run/large.sh >/run/large
read -r _ few type_few path_few <<FEW
$(grep '^few ' /run/large)
FEW
read -r _ many type_many path_many <<MANY
$(grep '^many ' /run/large)
MANY
note "$runs calls in ms: $few mounts: by type $type_few, by mount point $path_few; $many mounts: by type $type_many, by mount point $path_many"
is "the value by mount point among $many mounts" "$(sed -n 's/^value //p' /run/large)" 4000
at_most "by type, many mounts against few, percent" $((type_many * 100 / type_few)) 150
case $(uname -r) in
6.1.*) note "$(uname -r) has no listmount: one scan of the text" ;;
*) at_most "by mount point, many mounts against few, percent" $((path_many * 100 / path_few)) 300 ;;
esac
