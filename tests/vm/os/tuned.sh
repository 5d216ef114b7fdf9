# nfstuned as its unit, in its sandbox: what it writes, what it leaves, and what goes back however it ends.
# shellcheck shell=dash
mount_a() { nfs vers=4.2 /srv/a; }
ahead() { cat "/sys/class/bdi/$(dev_of /mnt/x)/read_ahead_kb"; }
ahead_is() { [ "$(ahead)" = "$1" ]; }
limits_are() { [ "$(knobs /mnt/x)" = "$1" ]; }
is_ready() { systemctl is-active --quiet nfstuned && [ -e /run/nfstuned/status.json ]; }
# known RATE: nfstuned knows from before how fast this export takes data, bytes a second
known() {
    mkdir -p /var/lib/nfstuned
    echo "{\"schema_version\":1,\"drain_bytes_per_second\":{\"127.0.0.1:/srv/a\":$1}}" >/var/lib/nfstuned/learned.json
}
stock_limits="1000000 0 0 "
stock_vm=$(vm_knobs)
mkdir -p /mnt/x /mnt/y
# nfs-utils' own helper keeps out: what is seen is the daemon's doing.
mkdir -p /etc/udev/rules.d
ln -sf /dev/null /etc/udev/rules.d/99-nfs.rules
udevadm control --reload

exposure=$(systemd-analyze security nfstuned.service 2>/dev/null | sed -n 's/.*Overall exposure level.*: \([0-9]*\)\.\([0-9]\).*/\1\2/p')
at_most "exposure of the unit, tenths" "${exposure:-99}" 25

note "observe"
mount_a
known 20000000.0
daemon_start <<END
[nfsrahead]
nfs4 = 4096
[nfstuned]
interval = 5
settle = 0
END
is "it is ready" "$(systemctl is-active nfstuned)" active
sleep 2
is "nothing is written: readahead" "$(ahead)" 128
is "nothing is written: limits" "$(has_bdi_limits && knobs /mnt/x)" "$(has_bdi_limits && echo "$stock_limits")"
is "it says what it would do" "$(nfstune status | grep -c '4096 is wanted')" 1
daemon_stop

note "readahead"
daemon_start <<END
[nfsrahead]
nfs4 = 4096
[nfstuned]
apply = readahead
interval = 5
END
holds "a mount that was there gets its value" wait_for 10 ahead_is 4096
umount /mnt/x
mount_a
holds "a new mount gets its value" wait_for 10 ahead_is 4096
# shellcheck disable=SC2016 # awk's own
unshare -m --propagation private sh -c 'mount -t nfs -o vers=4.2,nosharecache 127.0.0.1:/srv/b /mnt/y && awk "\$5 == \"/mnt/y\" {print \$3}" /proc/self/mountinfo >/tmp/elsewhere && sleep 30' &
wait_for 10 test -s /tmp/elsewhere
elsewhere_is() { [ "$(cat "/sys/class/bdi/$(cat /tmp/elsewhere)/read_ahead_kb")" = "$1" ]; }
holds "a mount of another namespace gets its value" wait_for 10 elsewhere_is 4096
kill $!
echo 9999 >"/sys/class/bdi/$(dev_of /mnt/x)/read_ahead_kb"
sleep 6
is "an admin's value stays" "$(ahead)" 9996
daemon_reload <<END
[nfsrahead]
nfs4 = 8192
[nfstuned]
apply = readahead
interval = 5
END
sleep 2
is "an admin's value stays over a reload" "$(ahead)" 9996
nfstune release "$(dev_of /mnt/x)/read_ahead_kb"
holds "released, it is managed again" wait_for 10 ahead_is 8192
daemon_reload <<END
[nfsrahead]
nfs4 = 2048
[nfstuned]
apply = nonsense
END
sleep 1
is "a bad configuration is not taken over" "$(ahead)" 8192
is "and that is said" "$(daemon_log | grep -c 'nonsense is none of')" 1
daemon_stop
is "what the admin had set is back" "$(ahead)" 9996
is "nothing is left in the ledger" "$(ls /run/nfstuned/state 2>/dev/null)" ""
umount /mnt/x

mount_a
if has_bdi_limits; then
    note "limits of the device"
    daemon_start <<END
[nfstuned]
apply = bdi
interval = 5
settle = 0
END
    is_limited() { [ "$(cat "/sys/class/bdi/$(dev_of /mnt/x)/strict_limit")" = 1 ]; }
    holds "a limit is set" wait_for 15 is_limited
    applied=$(knobs /mnt/x)
    note "limits: $applied"
    systemctl kill --signal=USR2 nfstuned
    sleep 3
    is "a new program in place keeps them" "$(knobs /mnt/x)" "$applied"
    is "and runs" "$(systemctl is-active nfstuned)" active
    daemon_kill
    holds "killed, they are back" wait_for 10 limits_are "$stock_limits"
    holds "started again by systemd, a limit is set again" wait_for 30 is_limited
    echo 500000 >"/sys/class/bdi/$(dev_of /mnt/x)/max_ratio_fine"
    sleep 2
    daemon_stop
    is "a foreign value stays, the rest goes back" "$(knobs /mnt/x)" "500000 0 0 "
fi

note "limits of the machine"
known 20000000.0
daemon_start <<END
[nfstuned]
apply = vm
interval = 5
settle = 0
END
vm_is_ours() { [ "$(cat /proc/sys/vm/dirty_bytes)" != 0 ]; }
holds "the machine's limit is set" wait_for 15 vm_is_ours
note "limits: $(vm_knobs)"
daemon_kill
vm_is_stock() { [ "$(vm_knobs)" = "$stock_vm" ]; }
holds "killed, it is back" wait_for 10 vm_is_stock
holds "started again by systemd, it is set again" wait_for 30 vm_is_ours
sysctl -q -w vm.dirty_ratio=15
sleep 6
daemon_stop
is "what sysctl -w has set stays, the other half goes back" "$(vm_knobs)" "10 0 15 0 "
sysctl -q -w vm.dirty_ratio=20
is "the machine is as it was" "$(vm_knobs)" "$stock_vm"

note "a machine whose /proc/sys is read only"
mkdir -p /run/systemd/system/nfstuned.service.d
printf '[Service]\nReadWritePaths=\n' >/run/systemd/system/nfstuned.service.d/observe.conf
daemon_start <<END
[nfstuned]
apply = vm
interval = 5
settle = 0
END
sleep 7
is "it runs" "$(systemctl is-active nfstuned)" active
is "nothing is written" "$(vm_knobs)" "$stock_vm"
is "and that is said once" "$(journalctl --unit=nfstuned --since=-15s --output=cat --no-pager | grep -c 'Read-only file system')" 1
daemon_stop
rm -r /run/systemd/system/nfstuned.service.d
systemctl daemon-reload
rm /etc/udev/rules.d/99-nfs.rules
udevadm control --reload
daemon_log | grep -v 'somebody else\|back to\| -> ' | tail -n 20 | while read -r line; do note "log: $line"; done
