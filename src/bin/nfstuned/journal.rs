//! Where messages go: stderr, which systemd takes to the journal, or syslog.

use std::io::{self, Write};

use log::{Level, LevelFilter, Log, Metadata, Record};

struct Journal {
    is_syslog: bool,
    /// stderr is the journal: it takes the level from the head of a line, sd-daemon(3).
    is_journal: bool,
}

pub fn install(is_syslog: bool, is_debug: bool) {
    let journal = Box::new(Journal {
        is_syslog,
        is_journal: std::env::var_os("JOURNAL_STREAM").is_some(),
    });
    // An error says that there is a logger already, which there is not.
    let _ = log::set_boxed_logger(journal);
    set_debug(is_debug);
}

pub fn set_debug(is_debug: bool) {
    log::set_max_level(if is_debug {
        LevelFilter::Debug
    } else {
        LevelFilter::Info
    });
}

impl Log for Journal {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let text = record.args().to_string();
        if self.is_syslog && to_syslog(record.level(), &text).is_ok() {
            return;
        }
        // Where this fails too, the exit code is what is left.
        let _ = if self.is_journal {
            writeln!(io::stderr(), "<{}>{text}", priority(record.level()))
        } else {
            writeln!(io::stderr(), "nfstuned: {text}")
        };
    }

    fn flush(&self) {}
}

/// syslog(3)
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// Opened anew for each message: messages are few, and the other end may have been restarted.
fn to_syslog(level: Level, text: &str) -> syslog::Result<()> {
    let mut writer = syslog::unix(syslog::Formatter3164 {
        facility: syslog::Facility::LOG_DAEMON,
        hostname: None,
        process: "nfstuned".to_owned(),
        pid: std::process::id(),
    })?;
    match level {
        Level::Error => writer.err(text),
        Level::Warn => writer.warning(text),
        Level::Info => writer.info(text),
        Level::Debug | Level::Trace => writer.debug(text),
    }
}
