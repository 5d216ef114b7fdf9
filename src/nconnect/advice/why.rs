//! The numbers behind an advice.

use crate::nconnect::asked::connections;
use crate::nconnect::live::history::Verdict;
use crate::nconnect::live::rules::link_bytes_per_s;
use crate::nconnect::live::window::Facts;

pub(super) fn why(verdict: &Verdict, facts: &Facts) -> Vec<String> {
    let window = &verdict.window;
    let agree = match verdict.busy_hours_ago {
        0 => format!("{} of the last {} busy intervals agree", verdict.windows, verdict.of),
        hours => format!(
            "{} of {} busy intervals agreed, {hours} busy hours ago",
            verdict.windows, verdict.of
        ),
    };
    let mut why = vec![agree];
    let carried = match link_bytes_per_s(facts) {
        Some(link) => format!(
            "{} carried {}, {:.0} % of the link of {}",
            connections(window.connections),
            rate(window.bytes_per_s()),
            100.0 * window.bytes_per_s() / link,
            rate(link)
        ),
        None => format!(
            "{} carried {}",
            connections(window.connections),
            rate(window.bytes_per_s())
        ),
    };
    why.push(carried);
    why.push(format!(
        "{:.0} requests on the wire, {:.0} waiting before it, on average",
        window.on_wire, window.queued
    ));
    if let (Some(now), Some(idle)) = (window.small_rtt_s, verdict.baseline.small_rtt_s) {
        why.push(format!(
            "small operations wait {:.1} times their idle time",
            now / idle.max(1e-6)
        ));
    }
    if let (Some(now), Some(low)) = (window.data_rtt_s, verdict.baseline.data_rtt_s) {
        why.push(format!("READs and WRITEs wait {:.1} times theirs", now / low.max(1e-6)));
    }
    if let Some(sending) = window.sending.filter(|sending| *sending >= 0.5) {
        why.push(format!(
            "{sending:.1} requests wait for another one to be written to the socket"
        ));
    }
    if let Some(share) = window.hottest_cpu.filter(|share| *share >= 0.8) {
        why.push(format!("one CPU is {:.0} % busy in the kernel", 100.0 * share));
    }
    let shares = [
        (window.retransmitted, 0.005, "of the bytes were sent again by TCP"),
        (window.out_of_order, 0.01, "of the packets came out of order"),
        (Some(window.sent_again), 0.01, "of the requests were sent again"),
        (
            window.window_limited,
            0.3,
            "of the sending time the socket's window was full",
        ),
    ];
    for (share, limit, text) in shares {
        if let Some(share) = share.filter(|share| *share > limit) {
            why.push(format!("{:.2} % {text}", 100.0 * share));
        }
    }
    if window.timeouts > 0 {
        why.push(format!("{} requests timed out", window.timeouts));
    }
    if window.softnet_drops > 0 {
        why.push(format!(
            "{} packets were dropped because no CPU had room",
            window.softnet_drops
        ));
    }
    why
}

fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s >= 1e9 {
        true => format!("{:.2} GB/s", bytes_per_s / 1e9),
        false => format!("{:.1} MB/s", bytes_per_s / 1e6),
    }
}
