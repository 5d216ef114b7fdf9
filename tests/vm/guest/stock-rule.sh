# Under nfs-utils' own rule: the helper prints a number and udev writes it.
# shellcheck shell=dash
rule stock
nfs vers=3 /srv/a /mnt/v3
is "v3" "$(value /mnt/v3)" 1000
nfs vers=4.2 /srv/d1/d2/d3/a /mnt/v4
is "v4.2" "$(value /mnt/v4)" 2000
conf </dev/null
echo 776 >"/sys/class/bdi/$(dev_of /mnt/v4)/read_ahead_kb"
udevadm trigger --subsystem-match=bdi --action=add
is "nothing configured: a value set by hand stays" "$(value /mnt/v4)" 776
