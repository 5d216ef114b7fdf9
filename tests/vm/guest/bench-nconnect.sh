# A server that gives each connection no more than its share: the bench finds that several carry more, counts them, and leaves
# nothing. And it does not measure connections that are somebody else's.
# shellcheck shell=dash
second_server_up
modprobe sch_fq
ip netns exec server2 tc qdisc replace dev veth-server root fq maxrate 160mbit
tc qdisc replace dev veth-client root fq maxrate 160mbit

bench() { nfstune bench nconnect 10.9.0.2:/srv/a --options vers=4.2 "$@"; }
bench --values 1,2,4,8 --budget 120s --json >/run/bench || not_ok "the bench came to its end"
note "$(sed -n 's/^  "conclusion": "\(.*\)",/\1/p' /run/bench)"
n=$(sed -n 's/^  "nconnect": \([0-9]*\).*/\1/p' /run/bench)
at_most "a limit of each connection is found: connections wanted, at least 4" 4 "${n:-0}"
is "nothing is mounted" "$(cat /proc/[0-9]*/mountinfo | grep -cE ' - nfs4? ')" 0
is "nothing is left in the export" "$(left_in /srv/a)" ""

mkdir -p /mnt/y && mount -t nfs -o vers=4.2 10.9.0.2:/srv/b /mnt/y
if bench --values 1,2 --rounds 2 --budget 20s >/dev/null 2>/run/refused; then not_ok "connections of others are not measured"; else
    note "$(tail -n 1 /run/refused)"
    holds "connections of others are not measured" grep -q 'mounted already' /run/refused
fi
# The first server, from a network namespace that has no mount of it.
nfs vers=4.2 /srv/a /mnt/x
if nfstune bench nconnect 10.9.0.1:/srv/a --options vers=4.2 --netns server2 --values 1,2 --rounds 2 --budget 20s --csv \
    >/run/rows 2>/run/said; then
    is "in another network namespace all is measured" "$(grep -c '^[12],' /run/rows)" 24
    holds "sweep reads the rows" nfstune sweep --rsize 128K /run/rows >/run/swept
else
    not_ok "in another network namespace all is measured: $(tail -n 1 /run/said)"
fi
umount /mnt/x /mnt/y
second_server_down
