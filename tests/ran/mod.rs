//! `millrace ran`: the standards' own numbers, and what is said of wrong ones.

use super::{ends, millrace};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// What a command prints.
fn done(args: &[&str]) -> String {
    let (stdout, stderr) = ends(&millrace(&[&["ran"], args].concat()).output().unwrap(), 0);
    assert_eq!(stderr, "");
    stdout.trim_end().to_owned()
}

/// What it says of wrong arguments.
fn refused(args: &[&str]) -> String {
    let (stdout, stderr) = ends(&millrace(&[&["ran"], args].concat()).output().unwrap(), 2);
    assert_eq!(stdout, "");
    stderr
}

/// The text of a file of `shared/data`, in a folder above this one; or the test says that it is absent.
fn shared_data(name: &str) -> Option<String> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = above.map(|folder| folder.join("shared/data").join(name)).find(|path| path.is_file());
    if found.is_none() {
        testing::skipped(format!("no shared/data/{name} above the repository"));
    }
    found.map(|path| std::fs::read_to_string(path).unwrap())
}

/// Set 1 of TS 33.401 Annex C.1: plain and ciphered.
const PLAIN: &str = "981ba6824c1bfb1ab485472029b71d808ce33e2cc3c0b5fc1f3de8a6dc66b1f0";
const CIPHERED: &str = "e9fed8a63d155304d71df20bf3e82214b20ed7dad2f233dc3c22d7bdeeed8e78";
const SET: [&str; 11] = [
    "nea2",
    "--key",
    "d3c5d592327fb11c4035c6680af8c6d1",
    "--count",
    "0x398a59b4",
    "--bearer",
    "0x15",
    "--direction",
    "downlink",
    "--bits",
    "253",
];

#[test]
fn nea2_is_that_of_the_published_test_sets_both_ways() {
    assert_eq!(done(&[&SET[..], &[PLAIN]].concat()), CIPHERED);
    assert_eq!(done(&[&SET[..], &[CIPHERED]].concat()), PLAIN);
    let Some(text) = shared_data("nea2-vectors.txt") else { return };
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() >= 24);
    for set in lines.chunks(3) {
        let words: Vec<&str> = set[0].split(' ').collect();
        let value = |name: &str| words[words.iter().position(|word| *word == name).unwrap() + 1];
        let (count, bearer) = (format!("0x{}", value("count")), format!("0x{}", value("bearer")));
        let args = [
            "nea2",
            "--key",
            value("key"),
            "--count",
            &count,
            "--bearer",
            &bearer,
            "--direction",
            value("dir"),
            "--bits",
            value("bits"),
            set[1].strip_prefix("pt ").unwrap(),
        ];
        assert_eq!(done(&args), set[2].strip_prefix("ct ").unwrap().to_lowercase(), "{}", set[0]);
    }
}

#[test]
fn messages_come_from_standard_input_and_results_go_out_as_json() {
    let mut child = millrace(&[&["ran"], &SET[..], &["--json", "-"]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // As `xxd` writes it.
    let text = format!("{}\n {}\n", &PLAIN[..30], &PLAIN[30..]);
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let json: Value = serde_json::from_str(&ends(&child.wait_with_output().unwrap(), 0).0).unwrap();
    assert_eq!((&json["bits"], &json["message"]), (&253.into(), &CIPHERED.into()));
}

#[test]
fn codewords_are_those_of_another_implementation_and_decode_to_their_information() {
    let Some(text) = shared_data("ldpc/codewords.txt") else { return };
    // One of each graph: the others are the crate's to judge.
    for graph in ["1", "2"] {
        let line = text.lines().find(|line| line.starts_with(&format!("{graph} "))).unwrap();
        let [_, z, info, coded] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(done(&["ldpc", "encode", "--bg", graph, "--z", z, info]), coded);
        assert_eq!(done(&["ldpc", "decode", "--bg", graph, "--z", z, "--hard", coded]), info);
        let json: Value = serde_json::from_str(&done(&[
            "ldpc", "decode", "--bg", graph, "--z", z, "--hard", "--json", coded,
        ]))
        .unwrap();
        assert_eq!((&json["checks_hold"], &json["info"]), (&true.into(), &info.into()));
    }
}

#[test]
fn transport_blocks_are_those_of_another_implementation_and_decode_to_themselves() {
    let Some(text) = shared_data("ldpc/transport-blocks.txt") else { return };
    let mut lines = text.lines().skip_while(|line| !line.starts_with("case 4"));
    let case = lines.next().unwrap();
    let value =
        |name: &str| case.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap();
    let block = lines.next().unwrap().strip_prefix("tb ").unwrap();
    let (rate, qm, g, bits) = (value("R"), value("Qm"), value("G"), value("A"));
    let format = ["--rate", rate, "--qm", qm, "--g", g];
    let mut transmissions = Vec::new();
    for rv in ["0", "1", "2", "3"] {
        let coded = lines.next().unwrap().split_once(' ').unwrap().1;
        let args = [&["transport-block", "encode", "--rv", rv], &format[..], &[block]].concat();
        assert_eq!(done(&args), coded, "rv {rv}");
        transmissions.push(coded);
    }
    let decode = |rv: &str, coded: &[&str]| {
        let head = ["transport-block", "decode", "--hard", "--json", "--bits", bits, "--rv", rv];
        let args = [&["ran"][..], &head, &format, coded].concat();
        millrace(&args).output().unwrap()
    };
    let json: Value = serde_json::from_str(&ends(&decode("0", &transmissions[..1]), 0).0).unwrap();
    assert_eq!((&json["accepted"], &json["block"]), (&true.into(), &block.into()));
    let facts = ["base_graph", "lifting_size", "code_blocks"].map(|fact| json[fact].to_string());
    assert_eq!(facts, ["BG", "Z", "C"].map(value));
    // The second version alone has too little of the information bits; with the last one it is enough.
    let (stdout, stderr) = ends(&decode("1", &transmissions[1..2]), 1);
    assert!(stdout.contains("\"accepted\": false"), "{stdout}");
    assert!(stderr.contains("the CRC doesn't hold: 0 of 1 code blocks were accepted"), "{stderr}");
    let json: Value =
        serde_json::from_str(&ends(&decode("1,3", &[transmissions[1], transmissions[3]]), 0).0).unwrap();
    assert_eq!(json["block"], block);
}

#[test]
fn soft_bits_count_by_how_sure_they_are() {
    // A code block of zeros, of which one bit was turned over and is unsure: as a hard bit it would count as much as the others.
    let mut llrs = "14".repeat(100);
    llrs.replace_range(40..42, "fe");
    let zeros = "000000";
    assert_eq!(done(&["ldpc", "decode", "--bg", "2", "--z", "2", &llrs]), zeros);
    // Noise is no codeword.
    let noise: Vec<String> =
        (0..100_u32).map(|at| format!("{:02x}", (at * at * 37 + at * 11) as u8)).collect();
    let noise = noise.concat();
    let (stdout, stderr) =
        ends(&millrace(&["ran", "ldpc", "decode", "--bg", "2", "--z", "2", &noise]).output().unwrap(), 1);
    assert_eq!(stdout.len(), 7);
    assert!(stderr.contains("not all parity checks hold after 20 iterations"), "{stderr}");
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_remedy() {
    let mut set = SET;
    set[2] = "d3c5";
    assert!(refused(&[&set[..], &["00"]].concat()).contains("--key: 2 octets, where a key has 16"));
    set[2] = SET[2];
    set[6] = "32";
    let said = refused(&[&set[..], &["00"]].concat());
    assert!(
        said.contains("--bearer: a bearer's identity has 5 bits, so 32 is none: it is at most 31"),
        "{said}"
    );
    set[6] = "15";
    set[4] = "398a59b4";
    assert!(refused(&[&set[..], &["00"]].concat()).contains("a hexadecimal number begins with 0x"));
    assert!(refused(&[&SET[..], &["00"]].concat()).contains("--bits: 253 bits don't fit into 1 octets"));
    assert!(
        refused(&[&SET[..], &["0g"]].concat())
            .contains("the message: `g` at character 2 is not a hexadecimal digit")
    );

    let ldpc = |z: &str, data: &str| refused(&["ldpc", "encode", "--bg", "1", "--z", z, data]);
    assert!(ldpc("17", "00").contains("--z: 17 is not a lifting size of TS 38.212 Table 5.3.2-1"));
    assert!(ldpc("2", "00").contains("1 octets given for information bits, where the code has 6"));
    refused(&["ldpc", "encode", "--bg", "3", "--z", "2", "00"]);

    let block = |change: &[&str]| {
        let mut args = vec![
            "transport-block",
            "encode",
            "--rate",
            "1/2",
            "--qm",
            "2",
            "--g",
            "80",
            "--rv",
            "0",
            "384727",
        ];
        for pair in change.chunks(2) {
            let at = args.iter().position(|arg| *arg == pair[0]).unwrap();
            args[at + 1] = pair[1];
        }
        refused(&args)
    };
    assert!(block(&["--rate", "1.5"]).contains("1.5 is not a code rate"));
    assert!(block(&["--rate", "half"]).contains("rates are such as 0.5, 1/3 or 948/1024"));
    assert!(block(&["--qm", "3"]).contains("--qm: no modulation has order 3: Qm is 1, 2, 4, 6, 8 or 10"));
    assert!(block(&["--g", "81"]).contains("81 coded bits are not whole symbols of 2 bits"));
    assert!(block(&["--g", "0"]).contains("0 coded bits, where this transport block may have 2 to"));
    assert!(block(&["--rv", "4"]).contains("--rv: 4 is not a redundancy version"));
    let decode = [
        "transport-block",
        "decode",
        "--rate",
        "1/2",
        "--qm",
        "2",
        "--g",
        "80",
        "--bits",
        "24",
        "--rv",
        "0,2",
        "00",
    ];
    assert!(refused(&decode).contains("--rv names 2 redundancy versions, and 1 transmissions are given"));
}
