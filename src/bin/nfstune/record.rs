//! `nfstune record`: the kernel's files behind some samples, as a tar archive, for a support case or a test.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use nfsrahead::apply::replace::create_new;
use nfsrahead::error::{Error, Result, EXIT_OK};
use nfsrahead::record::{self, Kept};
use nfsrahead::root::{Root, NFS_CONF};
use nfsrahead::sample::{self, Depth};

use crate::{exit, print};

#[derive(clap::Args)]
pub struct Args {
    /// The archive. It holds mount points, servers and the configuration
    file: PathBuf,
    /// Seconds between samples
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=300))]
    interval: u64,
    /// How many samples
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    samples: u64,
    /// The main configuration file; FILE.d is its folder
    #[arg(long, value_name = "FILE", default_value = NFS_CONF)]
    config: PathBuf,
}

pub fn run(root: &Root, args: &Args) -> Result<ExitCode> {
    let failed = || Error::io("write", &args.file);
    let file = create_new(&args.file)?;
    let mut archive = tar::Builder::new(BufWriter::new(file));
    for n in 0..args.samples {
        if n > 0 {
            std::thread::sleep(Duration::from_secs(args.interval));
        }
        let sample = sample::take(root, Depth::Counters)?;
        let mut kept = record::files(root, &sample);
        if n == 0 {
            kept.extend(record::configuration(root, &args.config));
        }
        let folder = record::folder(sample.boottime_ms);
        add(&mut archive, &folder, kept).map_err(failed())?;
    }
    archive
        .into_inner()
        .and_then(|mut file| file.flush())
        .map_err(failed())?;
    print(
        format!(
            "{} samples in {}\n",
            args.samples,
            nfsrahead::report::escape::escape_path(&args.file)
        )
        .as_bytes(),
    )?;
    Ok(exit(EXIT_OK))
}

fn add<W: Write>(archive: &mut tar::Builder<W>, folder: &str, kept: Vec<Kept>) -> io::Result<()> {
    for Kept { path, bytes } in kept {
        let inside = Path::new(folder).join(path.strip_prefix("/").unwrap_or(&path));
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(bytes.len()).unwrap_or_default());
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, inside, &*bytes)?;
    }
    Ok(())
}
