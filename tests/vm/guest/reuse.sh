# Device numbers are used again at once; the next mount must not get what was meant for the one before.
# shellcheck shell=dash
conf <<'CONF'
[nfsrahead]
nfs4 = 2000
[nfsrahead "/mnt/x"]
nfs4 = 4000
CONF
own=vers=4.2,nosharecache

reused=0 wrong=
for round in 1 2 3 4 5 6 7 8; do
    nfs $own /srv/a /mnt/x
    first=$(dev_of /mnt/x)
    umount /mnt/x
    nfs $own /srv/a /mnt/y
    [ "$first" != "$(dev_of /mnt/y)" ] || reused=$((reused + 1))
    got=$(value /mnt/y)
    [ "$got" = 2000 ] || wrong="$wrong $round:$got"
    umount /mnt/y
done
is "mounts that got another value than theirs" "${wrong:-none}" none
at_most "rounds without the same device number" $((8 - reused)) 7

for _ in 1 2 3 4 5; do
    nfs $own /srv/a /mnt/x
    umount /mnt/x
done
nfs $own /srv/a /mnt/x
is "value after five mounts and unmounts of the same place" "$(value /mnt/x)" 4000
unmount_all

# The client's own automount of a nested export goes after a while and comes again.
timeout=/proc/sys/fs/nfs/nfs_mountpoint_timeout
was=$(cat $timeout)
echo 1 >$timeout
inner_gone() { ! grep -q ' /mnt/x/inner ' /proc/self/mountinfo; }
nfs $own /srv/outer /mnt/x
for round in first second; do
    ls /mnt/x/inner >/dev/null
    is "nested export, $round time" "$(value /mnt/x/inner)" 4000
    if wait_for 10 inner_gone; then ok "nested export expired"; else not_ok "nested export did not expire"; fi
done
echo "$was" >$timeout
