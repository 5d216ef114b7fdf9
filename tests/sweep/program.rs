//! `nfstune sweep` as a program: what it says, in text, JSON and pictures, its exit codes and its errors.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::data::{folder, texts};

fn nfstune(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
        .arg("sweep")
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn all_files() -> Vec<String> {
    let path = |(name, _): (String, String)| folder().join(name).to_str().unwrap().to_owned();
    texts().into_iter().map(path).collect()
}

fn with_all_files(arguments: &[&str]) -> String {
    let files = all_files();
    let arguments: Vec<&str> = files
        .iter()
        .map(String::as_str)
        .chain(arguments.iter().copied())
        .collect();
    let (code, stdout, stderr) = nfstune(&arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    stdout
}

/// Files in a folder of their own, and the folder's path for messages.
fn files(files: &[(&str, &str)]) -> (TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let write = |(name, text): &(&str, &str)| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let paths = files.iter().map(write).collect();
    (dir, paths)
}

fn json(arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let (code, stdout, stderr) = nfstune(&arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn says_what_to_do_first_and_what_not_to_believe() {
    let text = with_all_files(&[]);
    let first = "reads: try 4, then 6; writes: leave 1; repeat each nconnect at least 3 times, in random order\n";
    assert!(text.starts_with(first), "{text}");
    for said in [
        "disk   read       >4 rsize   6       0.92        gain 1.94 x (1.16 x needed), smallest within 5 % of the best\n",
        "tmpfs  read       >4 rsize   4       0.57        gain 1.96 x (1.32 x needed), smallest within 5 % of the best\n",
        "9 % of the 1909 MiB/s that one connection has carried; suspect series\n",
        "all    read       >4 rsize   4       -           gain 1.96 x",
        "disk read: noise 4.1 %\n  stalls, left out: 1\n    nconnect 4, 16384 KiB: 602 MiB/s and 985 MiB/s\n",
        "  one pass far off the other: 14\n",
        "    nconnect 8, 2048 KiB: 7.2 MiB/s and 1452 MiB/s\n",
        "disk write: noise 2.0 %\n  suspect series, measure again: 3\n    nconnect 1, 2048 KiB: 68 MiB/s and 66 MiB/s\n",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn json_has_base_units_and_null_for_unknown() {
    let value: Value = serde_json::from_str(&with_all_files(&["--json"])).unwrap();
    assert_eq!(
        (value["schema_version"].as_u64(), value["variable"].as_str()),
        (Some(1), Some("nconnect"))
    );
    assert_eq!(value["rsize_bytes"], 1 << 20);
    assert_eq!(value["advice"][0]["try"], serde_json::json!([4, 6]));
    let disk_read = &value["runs"][0];
    assert_eq!(
        (&disk_read["run"], &disk_read["direction"]),
        (&"disk".into(), &"read".into())
    );
    assert_eq!(disk_read["outliers"].as_array().unwrap().len(), 14);
    assert_eq!(disk_read["one_connection_bytes_per_second"], 1_932_496.0 * 1024.0);
    let deep = &disk_read["classes"][1];
    assert_eq!(
        (deep["answer"].as_u64(), deep["verdict"].as_str()),
        (Some(6), Some("gain"))
    );
    assert_eq!(deep["scores"].as_array().unwrap().len(), 10);
    assert_eq!(deep["why"], Value::Null);

    let one = folder().join("disk-nconnect-01.txt");
    let value = json(&[one.to_str().unwrap()]);
    let class = &value["runs"][0]["classes"][1];
    assert_eq!(
        (&class["answer"], &class["confidence"], &class["gain"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(
        class["measure"],
        "measure others too: 1, 2, 4, 8 and 16, in random order"
    );
}

#[test]
fn one_setting_cannot_decide() {
    let one = folder().join("disk-nconnect-04.txt");
    let (code, stdout, stderr) = nfstune(&[one.to_str().unwrap()]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let said = "reads: cannot decide; writes: cannot decide; repeat each nconnect at least 3 times, in random order\n\
        to decide: measure others too: 1, 2, 4, 8 and 16, in random order\n";
    assert!(stdout.starts_with(said), "{stdout}");
}

#[test]
fn a_chart_for_the_eye() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chart.svg");
    with_all_files(&["--chart", path.to_str().unwrap()]);
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for title in ["disk read", "disk write", "tmpfs read", "tmpfs write"] {
        assert_eq!(
            svg.matches(&format!("{title}, in flight &gt;4: ")).count(),
            1,
            "{title}"
        );
    }
    // Readable in black and white: no colour but greys.
    for colour in svg.split("\"#").skip(1).map(|rest| &rest[..6]) {
        assert!(colour[..2] == colour[2..4] && colour[..2] == colour[4..], "{colour}");
    }
    let one = folder().join("disk-nconnect-01.txt");
    let (code, ..) = nfstune(&[one.to_str().unwrap(), "--chart", path.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert!(fs::read_to_string(&path).unwrap().contains("nothing to draw"));
    let (code, _, stderr) = nfstune(&[one.to_str().unwrap(), "--chart", "/proc/no/such.svg"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("nfstune: /proc/no/such.svg: cannot write: "),
        "{stderr}"
    );
}

#[test]
fn settings_from_the_command_line() {
    let sets: Vec<String> = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        .map(|n| {
            format!(
                "--set=disk:{n}={}",
                folder().join(format!("disk-nconnect-{n:02}.txt")).display()
            )
        })
        .to_vec();
    let value = json(&sets.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        (&value["runs"][0]["run"], &value["runs"][0]["classes"][1]["answer"]),
        (&"disk".into(), &6.into())
    );
    assert_eq!(value["pooled"], serde_json::json!([]), "one run");
}

/// A sweep of readahead has no depths: connections are not what is varied.
#[test]
fn another_variable() {
    let rows = [(128, 300), (1024, 900), (4096, 1990), (15360, 2000)];
    let row = |(setting, mb): (u64, u64)| {
        let rate = |percent: u64| mb * 10_000 * percent;
        format!("{setting},read,65536,{},{}\n", rate(100), rate(99))
    };
    let text = format!(
        "readahead,direction,record_bytes,bytes_per_second,again_bytes_per_second\n{}",
        rows.map(row).concat()
    );
    let (_dir, paths) = files(&[("all.csv", &text)]);
    let value = json(&[&paths[0], "--of", "readahead"]);
    assert_eq!(value["advice"][0]["try"], serde_json::json!([4096]));
    assert_eq!(value["runs"][0]["classes"][0]["depth"], "any");
    let (_, stdout, _) = nfstune(&[&paths[0], "--of", "readahead"]);
    assert!(stdout.contains("repeat each readahead at least 3 times"), "{stdout}");
    let (code, _, stderr) = nfstune(&[&paths[0]]);
    assert_eq!(code, Some(2), "no column nconnect, and none in the name: {stderr}");
}

fn fio(mb: u64, options: &str) -> String {
    format!(
        "note: written before the JSON\n{{ \"fio version\": \"fio-3.36\", \"global options\": {{ \"ioengine\": \"libaio\", \"rw\": \"read\" }},\n\
         \"jobs\": [{{ \"jobname\": \"deep\", \"groupid\": 0, \"job options\": {{ {options} \"bs\": \"1M\", \"iodepth\": \"16\" }},\n\
         \"read\": {{ \"bw_bytes\": {} }}, \"write\": {{ \"bw_bytes\": 0 }} }}] }}\n",
        mb * 1_000_000
    )
}

#[test]
fn repeated_fio_runs_decide() {
    let rates = [
        (1, [1000, 1010, 990]),
        (2, [1900, 1890, 1930]),
        (4, [2900, 2950, 2930]),
        (8, [2960, 2940, 2910]),
    ];
    let (_dir, paths) = files(
        &rates
            .iter()
            .flat_map(|(n, rates)| {
                rates
                    .iter()
                    .enumerate()
                    .map(move |(r, mb)| (format!("nconnect-{n}.rep{r}.json"), *mb))
            })
            .map(|(name, mb)| (&*name.leak(), &*fio(mb, "\"direct\": \"1\",").leak()))
            .collect::<Vec<_>>(),
    );
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let value = json(&paths);
    assert_eq!(value["repetitions"], 3);
    assert_eq!(value["advice"][0]["try"], serde_json::json!([4]));
    assert_eq!(value["cautions"], serde_json::json!([]));
    let (_, stdout, _) = nfstune(&paths);
    assert!(stdout.starts_with("reads: try 4\n"), "{stdout}");
    // The same sweep, each setting once: nothing tells how much luck was in it.
    let value = json(&[paths[0], paths[3], paths[6], paths[9]]);
    assert_eq!(
        value["runs"][0]["classes"][1]["why"],
        "how much equal measurements differ is unknown"
    );
    assert_eq!(value["advice"][0]["leave"], Value::Null);
}

/// As fio 3.33 wrote it: a job of two processes without group reporting, and after it a job of another kind.
#[test]
fn a_file_of_fio() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fio/nconnect-1.json");
    let text = fs::read_to_string(&file).unwrap();
    let (_dir, paths) = files(&[("nconnect-2.json", &text.replace("508400484", "508400485"))]);
    let value = json(&[
        "--set",
        &format!("1={}", file.display()),
        "--set",
        &format!("2={}", paths[0]),
    ]);
    let [read, write] = value["runs"].as_array().unwrap().as_slice() else {
        panic!("{value}")
    };
    assert_eq!(read["settings"], serde_json::json!([1, 2]));
    let work = &read["classes"][1]["works"][0];
    assert_eq!(
        (&work["in_flight_bytes"], &work["record_bytes"]),
        (&(16 << 20).into(), &(1 << 20).into())
    );
    assert_eq!(
        read["classes"][1]["peak_bytes_per_second"],
        508_400_485.0 + 524_288_000.0
    );
    assert_eq!(read["one_connection_bytes_per_second"], 508_400_484.0 + 524_288_000.0);
    assert_eq!(
        (&write["one_connection_bytes_per_second"], &write["placebo_noise"]),
        (&838_860_800.0.into(), &0.02.into())
    );
    let (_, stdout, _) = nfstune(&[
        "--set",
        &format!("1={}", file.display()),
        "--set",
        &format!("2={}", paths[0]),
    ]);
    let said = "reads: cannot decide; writes: cannot decide; repeat each nconnect at least 3 times, in random order\n\
        to decide: measure with records of 8 and 16 times rsize, or with several requests in flight\n\
        to decide: repeat every setting at least 3 times, in random order\n\nRUN";
    assert!(stdout.starts_with(said), "{stdout}");
    assert_eq!(
        stdout.matches("nothing was measured at this depth").count(),
        2,
        "of the writes: {stdout}"
    );
    assert!(!stdout.contains("SCORES"), "{stdout}");
}

#[test]
fn fio_through_the_page_cache_is_doubted() {
    let (_dir, paths) = files(&[("nconnect-1.json", &fio(1000, "")), ("nconnect-2.json", &fio(1001, ""))]);
    let (code, stdout, _) = nfstune(&[&paths[0], &paths[1]]);
    assert_eq!(code, Some(0));
    assert!(
        stdout.contains(&format!("{}: measured through the page cache", paths[0])),
        "{stdout}"
    );
    assert!(stdout.contains("fadvise_hint=0"), "{stdout}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let header = "nconnect,direction,record_bytes,bytes_per_second\n";
    for (name, text, said) in [
        (
            "nconnect-1.txt",
            "hello\n",
            ":1: neither iozone's output, nor fio's JSON, nor CSV",
        ),
        ("nconnect-1.txt", "", ":1: neither"),
        (
            "nconnect-1.csv",
            &format!("{header}1,read,x,1\n"),
            ":2: cell 3: not a size in bytes",
        ),
        ("nconnect-1.json", "note\n{ \"jobs\": [\n", ":3: not JSON: EOF"),
        ("nconnect-1.json", "{ \"jobs\": 3 }", ":1: no list of jobs"),
        ("nconnect-1.json", "{ \"jobs\": [] }", ":1: fio output without a job"),
        ("nconnect-1.txt", "kB reclen\n53248 4 x\n", ":2: not a rate"),
        (
            "nconnect-1.txt",
            "\x1b[2J kB reclen\n",
            ":1: iozone output without a row",
        ),
    ] {
        let (_dir, paths) = files(&[(name, text)]);
        let (code, stdout, stderr) = nfstune(&[&paths[0]]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{text:?}");
        assert!(stderr.starts_with(&format!("nfstune: {}{said}", paths[0])), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    for (path, said) in [
        ("/no/such-1", "/no/such-1: cannot read: "),
        ("/dev/zero1", "cannot read"),
        ("/", "cannot read"),
    ] {
        let (code, _, stderr) = nfstune(&[path]);
        assert_eq!(code, Some(1));
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn usage() {
    let file = folder().join("disk-nconnect-01.txt");
    let file = file.to_str().unwrap();
    let (_dir, paths) = files(&[("nothing.txt", "kB reclen\n64 4 1 2 3 4\n")]);
    for (arguments, said) in [
        (&[][..], "Usage: "),
        (&["--of", ""], "Usage: "),
        (&[file, "--of", "n connect"], "--of: "),
        (&[file, "--rsize", "0"], "--rsize: "),
        (&[file, "--rsize", "99999999999999999999M"], "--rsize: "),
        (&[file, "--tolerance", "99"], "--tolerance: "),
        (&[file, "--tolerance", "NaN"], "--tolerance: "),
        (&["--set", "4"], "--set: "),
        (&["--set", "x=file"], "--set: "),
        (&["--set", "4="], "--set: "),
        (&[&paths[0]], "its name does not tell nconnect: give it as --set N=FILE"),
    ] {
        let (code, stdout, stderr) = nfstune(arguments);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

/// Names from a file reach terminal and picture only as text.
#[test]
fn hostile_names() {
    let header = "run,nconnect,direction,record_bytes,bytes_per_second,again_bytes_per_second\n";
    let name = "<script>\u{1b}[2J&\u{202e}";
    let rows: String = [1, 2]
        .map(|n| format!("{name},{n},read,16777216,{n}000,{n}001\n"))
        .concat();
    let (dir, paths) = files(&[("all.csv", &format!("{header}{rows}"))]);
    let chart = dir.path().join("chart.svg");
    let (code, stdout, _) = nfstune(&[&paths[0], "--chart", chart.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("<script>\\033[2J&\\342\\200\\256"), "{stdout}");
    let svg = fs::read_to_string(chart).unwrap();
    assert!(!svg.contains("<script") && !svg.contains('\u{1b}'), "{svg}");
    assert!(svg.contains("&lt;script&gt;"), "{svg}");
}

/// JSON that is cut off or damaged anywhere is an error or an answer, never a crash.
#[test]
fn damaged_json() {
    let whole = fio(1000, "\"numjobs\": \"2\",");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nconnect-1.json");
    let run = |path: &Path, bytes: &[u8]| {
        fs::write(path, bytes).unwrap();
        let (code, _, stderr) = nfstune(&[path.to_str().unwrap()]);
        assert!(matches!(code, Some(0 | 1)), "{code:?} {stderr}");
        code
    };
    assert_eq!(run(&path, whole.as_bytes()), Some(0));
    for at in (0..whole.len()).step_by(7) {
        run(&path, &whole.as_bytes()[..at]);
        let mut damaged = whole.clone().into_bytes();
        damaged[at] = b"\"{}[]:,9-\xff\n"[at % 11];
        run(&path, &damaged);
    }
    let deep = format!("{{ \"jobs\": {}", "[".repeat(100_000));
    assert_eq!(run(&path, deep.as_bytes()), Some(1));
}
