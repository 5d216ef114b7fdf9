# Which policy a mount gets: fstab, mount point, export, server, type; and what is mounted below a policy's path.
# shellcheck shell=dash
conf <<'CONF'
[nfsrahead]
nfs = 1000
nfs4 = 2000
[nfsrahead "/mnt/media"]
nfs4 = 3000
[nfsrahead "/mnt/media/fast"]
nfs4 = 15*rsize
[nfsrahead "127.0.0.1:/srv/b"]
default = 4000
[nfsrahead "localhost:"]
default = 5M
CONF
own=vers=4.2,nosharecache

nfs $own /srv/a /mnt/media/a
is "below a mount point's path" "$(value /mnt/media/a)" 3000
nfs $own /srv/a /mnt/mediate
is "beside it, same letters" "$(value /mnt/mediate)" 2000
nfs vers=3 /srv/a /mnt/media/v3
is "a section without a value for this version" "$(value /mnt/media/v3)" 1000
nfs $own,rsize=65536 /srv/a /mnt/media/fast
is "15*rsize of 64 KiB, longest path" "$(value /mnt/media/fast)" 960
nfs $own /srv/b /mnt/b
is "by export" "$(value /mnt/b)" 4000
nfs $own /srv/b /mnt/media/b
is "mount point before export" "$(value /mnt/media/b)" 3000
mkdir -p /mnt/s && mount -t nfs -o $own localhost:/srv/a /mnt/s
is "by server" "$(value /mnt/s)" 5120

mkdir -p /mnt/media/f /mnt/g
cat >/etc/fstab <<FSTAB
127.0.0.1:/srv/a /mnt/media/f nfs4 $own,x-nfsrahead=6000 0 0
127.0.0.1:/srv/a /mnt/g nfs vers=3,nosharecache,x-nfsrahead=777 0 0
FSTAB
mount /mnt/media/f
is "fstab before mount point" "$(value /mnt/media/f)" 6000
mount /mnt/g
is "fstab, a value that is no whole page" "$(value /mnt/g)" 776
unmount_all

nfs $own /srv/outer /mnt/media/outer
ls /mnt/media/outer/inner >/dev/null
is "nested export mounted by the client, below the path" "$(value /mnt/media/outer/inner)" 3000
is "the nested export has a device of its own" "$(for m in outer outer/inner; do dev_of /mnt/media/$m; done | sort -u | wc -l)" 2
nfs $own /srv/d1/d2/d3/a /mnt/media/d
is "four levels below the pseudo root, by mount point" "$(value /mnt/media/d)" 3000
nfs $own /srv/d1/d2/d3/a /mnt/d
is "four levels below the pseudo root, by type" "$(value /mnt/d)" 2000
nfs $own / /mnt/media/root
is "the pseudo root itself" "$(value /mnt/media/root)" 3000
ls /mnt/media/root/srv/d1/d2/d3/a >/dev/null
is "from the pseudo root down" "$(value /mnt/media/root/srv/d1/d2/d3/a)" 3000
