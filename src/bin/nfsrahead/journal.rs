//! Where messages go: stderr for people, syslog under udev. One line each, everything from outside escaped by who wrote it.

use std::io::{self, IsTerminal, Write};

use log::{Level, LevelFilter, Log, Metadata, Record};

struct Journal {
    is_foreground: bool,
}

/// `is_foreground`: stderr. Otherwise syslog, opened only when there is something to say.
pub fn install(is_foreground: bool, is_debug: bool) {
    let level = if is_debug {
        LevelFilter::Debug
    } else {
        LevelFilter::Info
    };
    let journal = Box::new(Journal { is_foreground });
    // An error says that there is a logger already, which there is not.
    let _ = log::set_boxed_logger(journal).map(|()| log::set_max_level(level));
}

impl Log for Journal {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let text = record.args().to_string();
        let is_for_people = self.is_foreground || io::stderr().is_terminal();
        if is_for_people || to_syslog(record.level(), &text).is_err() {
            // Where this fails too, the exit code is what is left.
            let _ = writeln!(io::stderr(), "nfsrahead: {text}");
        }
    }

    fn flush(&self) {}
}

fn to_syslog(level: Level, text: &str) -> syslog::Result<()> {
    let mut writer = syslog::unix(syslog::Formatter3164 {
        facility: syslog::Facility::LOG_DAEMON,
        hostname: None,
        process: "nfsrahead".to_owned(),
        pid: std::process::id(),
    })?;
    match level {
        Level::Error => writer.err(text),
        Level::Warn => writer.warning(text),
        Level::Info => writer.info(text),
        Level::Debug | Level::Trace => writer.debug(text),
    }
}
