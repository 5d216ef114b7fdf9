# A server that no longer answers: nothing that the helper does may touch the file system.
# shellcheck shell=dash
second_server_up
mkdir -p /mnt/dead
mount -t nfs -o vers=4.2 10.9.0.2:/srv/a /mnt/dead
dev=$(dev_of /mnt/dead)
is "mount of the second server" "$(value /mnt/dead)" 2000
echo 128 >"/sys/class/bdi/$dev/read_ahead_kb"

ip link set veth-client down
# Something that hangs, as on a real machine: the mount is truly dead.
stat /mnt/dead/nothing >/dev/null 2>&1 &
stuck=$!
usleep 500000
if kill -0 $stuck 2>/dev/null; then ok "the server is dead"; else not_ok "the server still answers"; fi
trigger_ms() {
    udevadm trigger --subsystem-match=bdi --action=add
    settle_ms
}
thrice trigger_ms >/run/with
is "value of the dead mount after a trigger" "$(dev_value "$dev")" 2000
rule none
thrice trigger_ms >/run/without
costs "udev busy with it" 300 /run/without /run/with
rule ours

ip link set veth-client up
wait $stuck
unmount_all
second_server_down
