//! What is being measured and how long it may still take: on terminals only, on standard error.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    time: Duration,
}

impl Progress {
    /// `time` is the budget: the end may come sooner.
    pub fn new(time: Duration) -> Progress {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        // Draws nothing where standard error is no terminal.
        let bar = ProgressBar::new(millis);
        if let Ok(style) = ProgressStyle::with_template("{wide_msg} {bar:24} {prefix:>7} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress {
            bar,
            began: Instant::now(),
            time,
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn left(&self) -> Duration {
        self.time.saturating_sub(self.elapsed())
    }

    pub fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
        self.tick();
    }

    pub fn tick(&self) {
        let passed = self.elapsed().min(self.time);
        self.bar
            .set_position(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        self.bar.set_prefix(format!("{} s", self.left().as_secs()));
    }

    /// Takes the bar away, so that what is printed next stands alone.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
