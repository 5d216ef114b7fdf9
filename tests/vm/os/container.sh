# What the container recipe mounts is enough: nfstuned of /debs/nfstuned.deb in a root directory of its own, with the mounts in
# /debs/mounts (from daemonset.yaml: "ro|rw HOST_PATH PATH") and no capability.
# shellcheck shell=dash
stock_vm=$(vm_knobs)
mkdir -p /mnt/x
nfs vers=4.2 /srv/a
settle
before=$(dev_value "$(dev_of /mnt/x)")
cp /etc/nfs.conf /tmp/nfs.conf
conf <<END
[nfsrahead]
nfs4 = 4096
[nfstuned]
apply = readahead, bdi, vm
interval = 5
settle = 0
END
mkdir -p /image/usr /image/lib /image/lib64 /image/host /run/nfstuned /var/lib/nfstuned /unpacked
dpkg -x /debs/nfstuned.deb /unpacked
binds() { sed -n "s/^$1 \([^ ]*\) \(.*\)/\1:\2/p" /debs/mounts | paste -sd ' '; }
contained() {
    systemd-run --quiet --collect -p Type=exec -p RootDirectory=/image -p MountAPIVFS=no -p "BindPaths=$(binds rw)" \
        -p "BindReadOnlyPaths=/usr /lib /lib64 /unpacked:/nfstuned $(binds ro)" \
        -p CapabilityBoundingSet= -p NoNewPrivileges=yes -p PrivateNetwork=yes "$@"
}
holds "it starts" contained --unit=contained /nfstuned/usr/sbin/nfstuned --root /host
dd if=/dev/zero of=/mnt/x/file bs=1M count=8 conv=fsync 2>/dev/null
sleep 12
is "it runs" "$(systemctl is-active contained)" active
status=$(contained --pipe --wait /nfstuned/usr/bin/nfstune --root /host status)
is "the node's mount is known by its path" "$(echo "$status" | grep -c '^/mnt/x  127.0.0.1:/srv/a  NFSv4.2')" 1
is "and what is configured for it" "$(echo "$status" | grep -c '4096.*/etc/nfs.conf:2')" 1
metrics=$(contained --pipe --wait /nfstuned/usr/bin/nfstune --root /host metrics)
is "and what it has written" "$(echo "$metrics" | grep -c '^nfstune_mount_info.*/mnt/x')" 1
no_root() { ! contained --pipe --wait /usr/bin/ls /host/proc/self/root/ >/dev/null 2>&1; }
holds "the folders of the node's first process stay closed" no_root
is "nothing is set: readahead" "$(dev_value "$(dev_of /mnt/x)")" "$before"
is "nothing is set: the machine" "$(vm_knobs)" "$stock_vm"
echo "$status" | while read -r line; do note "status: $line"; done
journalctl --unit=contained --output=cat --no-pager | tail -n 8 | while read -r line; do note "log: $line"; done
systemctl stop contained
conf </tmp/nfs.conf
rm -rf /image /unpacked /var/lib/nfstuned /run/nfstuned /mnt/x/file
