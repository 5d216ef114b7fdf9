# The bench of writers on a client with a memory of its own: a machine without limits holds them for seconds over a slow link, the
# limit that nfstuned would set shortens that; and with it gone all knobs are as they were.
# shellcheck shell=dash
shape 100 1
from_server vers=4.2
knobs=/sys/class/bdi/$(dev_of /mnt/x)
all() { cat "$knobs/strict_limit" "$knobs/max_ratio_fine" "$knobs/min_ratio_fine" "$knobs/read_ahead_kb"; }
all >/run/knobs
field() { sed -n "/^  \"$1\"/,/^  [}\"]/s/^ *\"$2\": \([0-9.]*\).*/\1/p" /run/bench | head -n 1; }
percent() { echo "$1" | awk '{ printf "%d", 100 * $1 + 0.5 }'; }
nfstune bench write /mnt/x --compare --size 256M --rounds 2 --budget 240s --json --report /run/report.html >/run/bench ||
    not_ok "the bench came to its end"
note "$(sed -n 's/^  "conclusion": "\(.*\)",/\1/p' /run/bench)"
note "as it is: longest write() $(field as_it_is longest_write_seconds) s, worst step $(field as_it_is worst_step_seconds) s"
note "limited:  longest write() $(field limited longest_write_seconds) s, worst step $(field limited worst_step_seconds) s"
at_most "without a limit a write() waits for seconds, percent of one" 100 "$(percent "$(field as_it_is longest_write_seconds)")"
at_most "the longest write() with the limit, percent of that without" \
    "$(percent "$(field limited_to_as_it_is longest_write)")" 80
at_most "90 percent of the throughput, and what is reached" 90 "$(percent "$(field limited_to_as_it_is throughput)")"
all >/run/knobs.now
holds "the knobs are as they were" cmp /run/knobs /run/knobs.now
is "nothing is left in the export" "$(on_server 'find /srv/a -type f')" ""
