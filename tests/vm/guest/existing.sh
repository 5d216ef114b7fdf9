# Mounts that were there before the rule, and a configuration without a value.
# shellcheck shell=dash
rule none
nfs vers=3 /srv/a /mnt/v3
nfs vers=4.2 /srv/d1/d2/d3/a /mnt/v4
is "v3 without a rule" "$(value /mnt/v3)" 128
is "v4.2 without a rule" "$(value /mnt/v4)" 128
rule ours
is "the new rule alone changes nothing" "$(value /mnt/v4)" 128
trigger() { udevadm trigger --subsystem-match=bdi --action=add; }
trigger
is "v3 after a trigger" "$(value /mnt/v3)" 1000
is "v4.2 after a trigger" "$(value /mnt/v4)" 2000

conf </dev/null
echo 776 >"/sys/class/bdi/$(dev_of /mnt/v4)/read_ahead_kb"
trigger
is "nothing configured: a value set by hand stays" "$(value /mnt/v4)" 776
nfs vers=4.2,nosharecache /srv/a /mnt/new
is "nothing configured: a new mount keeps the kernel's" "$(value /mnt/new)" 128
printf '[nfsrahead]\nnfs4 = leave\nnfs = 1000\n' | conf
trigger
is "leave: a value set by hand stays" "$(value /mnt/v4)" 776
