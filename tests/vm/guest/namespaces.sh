# Mounts that udev's mount namespace cannot see, does not see yet, or never will.
# shellcheck shell=dash
# The kernel lists superblocks for each network namespace, whatever the mount namespace.
rm -f /run/held
unshare -m --propagation private sh -c '
    . /vm/lib.sh
    nfs vers=4.2 /srv/a /mnt/hidden
    dev_of /mnt/hidden >/run/held
    wait_for 30 test -e /run/seen' &
hidden=$!
wait_for 20 test -s /run/held
settle
is "mount in a private mount namespace, by type" "$(dev_value "$(cat /run/held)")" 2000
: >/run/seen
wait $hidden
rm /run/seen
wait_for 10 no_nfs

for seconds in 0.05 0.5; do
    hold /mnt/h $seconds
    settle
    is "superblock waiting $seconds s for its mount, by type, at once" "$(dev_value "$(cat /run/held)")" 2000
    wait "$holder"
    is "the same with its mount" "$(value /mnt/h)" 2000
    unmount_all
done
conf <<CONF
[nfsrahead]
nfs4 = 2000
wait = 2
[nfsrahead "/mnt/h"]
nfs4 = 4000
CONF
for seconds in 0.05 0.5; do
    hold /mnt/h $seconds
    wait "$holder"
    is "superblock that waited $seconds s for its mount, by mount point" "$(value /mnt/h)" 4000
    unmount_all
done
hold - 5
settle
is "superblock that never gets a mount: the type's value" "$(dev_value "$(cat /run/held)")" 2000
wait "$holder"
conf </vm/nfs.conf

# Not in this network namespace's list, so nothing says that it is NFS before it is mounted; the daemon's task.
second_server_up
ip netns exec server2 tc qdisc add dev lo root netem delay 20ms
mkdir -p /mnt/far
nsenter --net=/run/netns/server2 mount -t nfs -o vers=4.2 127.0.0.1:/srv/b /mnt/far
is "mount made from another network namespace is left" "$(value /mnt/far)" 128
umount /mnt/far
second_server_down
