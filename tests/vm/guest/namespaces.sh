# Mounts that udev's mount namespace cannot see, does not see yet, or never will.
# shellcheck shell=dash
by_path() {
    conf <<CONF
[nfsrahead]
nfs4 = 2000
wait = 2
[nfsrahead "/mnt/h"]
nfs4 = 4000
CONF
}

# The kernel lists superblocks for each network namespace, whatever the mount namespace.
unshare -m --propagation private sh -c '
    . /vm/lib.sh
    nfs vers=4.2 /srv/a /mnt/hidden
    : >/run/mounted
    wait_for 30 test -e /run/seen' &
holder=$!
wait_for 20 test -e /run/mounted
settle
is "mount in a private mount namespace, by type" "$(dev_value "$(newest_volume)")" 2000
: >/run/seen
wait $holder
rm /run/mounted /run/seen
wait_for 10 no_nfs

# held CONFIGURATION HOLD: NFSv4 superblock that gets its mount HOLD seconds after its event
held() {
    mkdir -p /mnt/h
    fsmount 127.0.0.1:/srv/a vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,nosharecache /mnt/h "$1" 0
}
for hold in 0.05 0.5; do
    held $hold &
    holder=$!
    wait_for 20 newest_volume >/dev/null
    settle
    is "superblock waiting $hold s for its mount, by type, at once" "$(dev_value "$(newest_volume)")" 2000
    wait $holder
    is "the same with its mount" "$(value /mnt/h)" 2000
    unmount_all
done
by_path
for hold in 0.05 0.5; do
    held $hold
    is "superblock that waited $hold s for its mount, by mount point" "$(value /mnt/h)" 4000
    unmount_all
done
fsmount 127.0.0.1:/srv/a vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,nosharecache - 5 0 &
holder=$!
wait_for 20 newest_volume >/dev/null
settle
is "superblock that never gets a mount: the type's value" "$(dev_value "$(newest_volume)")" 2000
wait $holder

# Not in this network namespace's list, so nothing says that it is NFS before it is mounted; the daemon's task.
second_server_up
ip netns exec server2 tc qdisc add dev lo root netem delay 20ms
mkdir -p /mnt/far
nsenter --net=/run/netns/server2 mount -t nfs -o vers=4.2 127.0.0.1:/srv/b /mnt/far
is "mount made from another network namespace is left" "$(value /mnt/far)" 128
umount /mnt/far
second_server_down
