# From the archive to the disk: its modules, the tests, our programs and what --put named go along.
# shellcheck shell=dash
modprobe -a virtio_pci virtio_blk ext4
wait_for 20 test -b /dev/vda
mount -t ext4 /dev/vda /mnt
mkdir -p /mnt/usr/lib/modules /mnt/srv/a /mnt/srv/b
cp -a /lib/modules/. /mnt/usr/lib/modules/
cp -a /vm /mnt/
cp /usr/bin/busybox /usr/bin/writer /mnt/usr/bin/
cp -a /disk/. /mnt/
for dir in /sys/kernel/tracing /tmp /run /sys /proc /dev; do umount -l $dir; done
exec switch_root /mnt /lib/systemd/systemd
