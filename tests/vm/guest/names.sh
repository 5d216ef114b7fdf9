# Names that mountinfo has to escape, and names that look like the rest of its line.
# shellcheck shell=dash
conf <<'CONF'
[nfsrahead]
nfs4 = 2000
[nfsrahead "/mnt/odd"]
nfs4 = 3000
[nfsrahead "127.0.0.1:/srv/a"]
nfs4 = 4000
CONF
own=vers=4.2,nosharecache
newline='
'

# try WHAT NAME: as a mount point below a path with a policy, and as an exported directory with one
try() {
    nfs $own /srv/b "/mnt/odd/$2"
    is "mount point with $1" "$(value "/mnt/odd/$2")" 3000
    mkdir -p "/srv/a/$2"
    nfs $own "/srv/a/$2" /mnt/plain
    is "export with $1" "$(value /mnt/plain)" 4000
    umount /mnt/plain "/mnt/odd/$2"
}

try "a blank" "sp ace"
try "blanks at both ends" " edge "
try "a newline" "new${newline}line"
try "a tab" "tab$(printf '\t')stop"
try "a backslash" 'back\slash'
try "an escape spelled out" 'back\040slash'
try "bytes that are not UTF-8" "$(printf 'bad\377\376utf')"
try "the look of a mountinfo line" "a - nfs4 x"

mkdir -p "/mnt/fs tab"
printf '%s\n' "127.0.0.1:/srv/b /mnt/fs\\040tab nfs4 $own,x-nfsrahead=6000 0 0" >/etc/fstab
mount "/mnt/fs tab"
is "a blank in fstab" "$(value "/mnt/fs tab")" 6000
