# The value by protocol version, and with several connections.
# shellcheck shell=dash

# nconnect counts only for the first NFSv4 mount of a server, so that mount comes first.
nfs vers=4.2,nconnect=4 /srv/b /mnt/n4
is "v4.2 nconnect=4 has 4 connections" "$(xprts /mnt/n4)" 4
is "v4.2 nconnect=4" "$(value /mnt/n4)" 2000
nfs vers=3 /srv/a /mnt/v3
is "v3" "$(value /mnt/v3)" 1000
nfs vers=4.1 /srv/a /mnt/v41
is "v4.1" "$(value /mnt/v41)" 2000
nfs vers=4.2,nosharecache /srv/a /mnt/v42
is "v4.2" "$(value /mnt/v42)" 2000
is "devices of their own" "$(for m in n4 v3 v41 v42; do dev_of /mnt/$m; done | sort -u | wc -l)" 4
