# The Debian packages over nfs-common: installed, upgraded while the daemon applies limits, removed, purged, installed again.
# The packages are in /debs, and once more with a higher version in /debs/new.
# shellcheck shell=dash
ahead() { cat "/sys/class/bdi/$(dev_of /mnt/x)/read_ahead_kb"; }
ahead_is() { [ "$(ahead)" = "$1" ]; }
sum() { md5sum <"$1"; }
export DEBIAN_FRONTEND=noninteractive
stock_program=$(sum /usr/libexec/nfsrahead)
stock_rule=$(sum /usr/lib/udev/rules.d/99-nfs.rules)
mkdir -p /mnt/x
nfs vers=4.2 /srv/a
udevadm settle
is "before: the kernel's value, or nfs-utils'" "$(ahead)" 128
conf <<END
[nfsrahead]
nfs4 = 15*rsize
END

note "an installation that fails"
no_diversion() { [ -z "$(dpkg-divert --list '*nfsrahead*'; dpkg-divert --list '*99-nfs*')" ]; }
holds "a broken package does not install" eval '! dpkg -i /debs/broken.deb >/tmp/broken 2>&1'
is "it had put them aside" "$(grep -c '^Adding .*diversion' /tmp/broken)" 2
is "nfs-utils' program is there" "$(sum /usr/libexec/nfsrahead)" "$stock_program"
is "and its rule" "$(sum /usr/lib/udev/rules.d/99-nfs.rules)" "$stock_rule"
holds "nothing is diverted" no_diversion

note "install"
holds "nfsrahead installs" dpkg -i /debs/nfsrahead.deb
is "the program is another one" "$([ "$(sum /usr/libexec/nfsrahead)" = "$stock_program" ] && echo the same)" ""
rsize=$(sed -n 's/.* \/mnt\/x .*rsize=\([0-9]*\).*/\1/p' /proc/self/mounts)
expected=$((15 * rsize / 1024))
holds "a mount that was there has its value" wait_for 10 ahead_is "$expected"
umount /mnt/x
nfs vers=4.2 /srv/a
holds "a new mount has its value" wait_for 10 ahead_is "$expected"
holds "nfstuned installs" dpkg -i /debs/nfstuned.deb
is "it is not started" "$(systemctl is-active nfstuned)" inactive
is "nor enabled" "$(systemctl is-enabled nfstuned 2>/dev/null)" disabled

note "upgrade while limits are applied"
mkdir -p /var/lib/nfstuned
echo '{"schema_version":1,"drain_bytes_per_second":{"127.0.0.1:/srv/a":20000000.0}}' >/var/lib/nfstuned/learned.json
conf <<END
[nfsrahead]
nfs4 = 15*rsize
[nfstuned]
apply = bdi, vm
interval = 5
settle = 0
END
systemctl enable --now nfstuned
vm_is_ours() { [ "$(cat /proc/sys/vm/dirty_bytes)" != 0 ]; }
holds "the limit is set" wait_for 15 vm_is_ours
applied=$(vm_knobs)
pid=$(systemctl show -P MainPID nfstuned)
# Every 20 ms: was there a gap?
(while [ ! -e /tmp/stop ]; do [ "$(vm_knobs)" = "$applied" ] || echo gap >>/tmp/gaps; sleep 0.02; done) &
holds "both upgrade" dpkg -i /debs/new/nfsrahead.deb /debs/new/nfstuned.deb
sleep 3
touch /tmp/stop
is "no gap in between" "$(wc -l 2>/dev/null </tmp/gaps)" ""
is "the same process" "$(systemctl show -P MainPID nfstuned)" "$pid"
is "with the new program" "$(readlink "/proc/$pid/exe")" /usr/sbin/nfstuned
is "the new version is installed" "$(dpkg-query -Wf '${Version}' nfstuned)" 0.1.1-1

note "remove and purge"
holds "both are removed" dpkg -r nfstuned nfsrahead
is "the daemon is gone" "$(cat /proc/[0-9]*/comm | grep -cx nfstuned)" 0
is "every knob is back" "$(vm_knobs)" "10 0 20 0 "
is "nfs-utils' program is back" "$(sum /usr/libexec/nfsrahead)" "$stock_program"
is "and its rule" "$(sum /usr/lib/udev/rules.d/99-nfs.rules)" "$stock_rule"
holds "both are purged" dpkg -P nfstuned nfsrahead
is "no file is left" "$(find / -xdev \( -name '*nfstune*' -o -name '*.nfs-utils' -o -path '*nfsrahead*' \) ! -path '/debs/*' ! -path '/proc/*' ! -path '/vm/*' \
    ! -path /usr/libexec/nfsrahead ! -path '/usr/share/man/man5/nfsrahead.5.gz' 2>/dev/null)" ""
holds "no diversion is left" no_diversion
holds "nfs-common is whole" dpkg -V nfs-common

note "again"
holds "both install again" dpkg -i /debs/nfsrahead.deb /debs/nfstuned.deb
umount /mnt/x
nfs vers=4.2 /srv/a
holds "a new mount has its value" wait_for 10 ahead_is "$expected"

note "what happens around it"
ours=$(sum /usr/libexec/nfsrahead)
holds "a broken upgrade does not install" eval '! dpkg -i /debs/broken.deb'
is "the program stays" "$(sum /usr/libexec/nfsrahead)" "$ours"
holds "a later nfs-common installs" dpkg -i --force-depends /debs/nfs-common.deb
is "beside it" "$(sum /usr/libexec/nfsrahead)" "$ours"
is "with its program aside" "$(cat /usr/libexec/nfsrahead.nfs-utils)" later
holds "both are purged together" dpkg -P nfstuned nfsrahead
is "the later program is in its place" "$(cat /usr/libexec/nfsrahead)" later
is "and the later rule" "$(cat /usr/lib/udev/rules.d/99-nfs.rules)" later
