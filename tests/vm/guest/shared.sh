# Mounts without a device of their own: no event comes, and a value set by hand stays.
# shellcheck shell=dash
mkdir -p /mnt/bind
for vers in 3 4.2; do
    nfs vers=$vers /srv/a /mnt/first
    is "v$vers, first mount" "$(value /mnt/first)" "$([ $vers = 3 ] && echo 1000 || echo 2000)"
    echo 776 >"/sys/class/bdi/$(dev_of /mnt/first)/read_ahead_kb"
    watch

    nfs vers=$vers /srv/a /mnt/second
    nfs vers=$vers /srv/a/sub /mnt/below
    mount --bind /mnt/first /mnt/bind
    # NFSv4 walks the pseudo root again; those levels are devices, and gone.
    [ $vers != 3 ] || is "v3, devices that came with a second mount, one below and a bind mount" "$(devices)" 0
    is "v$vers, one device for all" "$(for m in first second below bind; do dev_of /mnt/$m; done | sort -u | wc -l)" 1
    is "v$vers, value after them" "$(value /mnt/first)" 776
    umount /mnt/first
    mount -o remount,ro /mnt/second
    is "v$vers, value when the first is gone and another remounted" "$(value /mnt/bind)" 776
    unmount_all
done
