//! N4 in one process after the other.

use crate::bench::*;
use n4::Header;
use pfcp::ie::{NtpSeconds, ReportingTriggers, UsageReportTrigger};
use pfcp::message::UrrParameters;
use std::process::Command;

/// What the next process doesn't know: the history, that this one was about to stop, how often a request was sent in vain, and conversations.
/// Tests of these have one process.
const OF_ONE_PROCESS: [&str; 9] = [
    "n4_applications::a_flood_of_beginnings_does_not_flood_the_smf",
    "n4_applications::a_part_is_told_under_the_name_that_the_rule_has",
    "n4_applications::each_rule_is_told_of_what_it_asks_for",
    "n4_applications::the_smf_is_told_where_an_application_begins_and_ends",
    "n4_history::",
    "n4_leaving::the_last_octet_of_every_session_is_told_to_its_smf",
    "n4_leaving::an_smf_that_does_not_answer_is_given_up",
    "n4_reports::an_smf_that_never_answers_does_not_silence_a_session_for_ever",
    "portable::",
];

/// All that is tested of N4 holds though processes follow each other all the time.
#[test]
fn all_tests_pass_though_processes_follow_each_other() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    OF_ONE_PROCESS.iter().for_each(|test| {
        command.args(["--skip", test]);
    });
    let output = command.env(RESTLESSLY, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let passed = text.split(" passed").next().and_then(|before| before.rsplit(' ').next()).unwrap();
    assert!(passed.parse::<u32>().unwrap() > 40, "{text}");
}

/// A measurement whose time is over meanwhile is told at once, with its right beginning; and the next one is as long as ever.
#[test]
fn what_became_due_in_the_pause_is_due_at_once() {
    let mut bench = Bench::new(1);
    let every = UrrParameters { period: Some(10), ..UrrParameters::default() };
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::PERIO, every)]));
    bench.pass(4 * SECOND);
    bench.up(&session, 100);
    bench.restart(9 * SECOND);
    assert_eq!(bench.smfs[0].reports.len(), 0);
    bench.pass(SECOND);
    let reports = bench.smfs[0].take_reports();
    let [report] = &reports[..] else { panic!("{reports:?}") };
    let [usage] = &report.usage_reports[..] else { panic!("{report:?}") };
    assert_eq!(usage.trigger.0, UsageReportTrigger::PERIO);
    assert_eq!(usage.volume.unwrap().total, Some(100));
    let NtpSeconds(start) = usage.start.unwrap();
    assert_eq!((usage.end.unwrap().0 - start, usage.first_packet.unwrap().0 - start), (13, 4));
    bench.pass(8 * SECOND);
    assert_eq!(bench.smfs[0].reports.len(), 0);
    bench.pass(3 * SECOND);
    assert_eq!(bench.smfs[0].reports.len(), 1);
}

/// A report that was not answered before the pause is sent again afterwards, with the number that it had: an SMF that has it already charges
/// nothing twice.
#[test]
fn an_unanswered_report_is_the_same_afterwards() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    bench.smfs[0].answer = Answer::Wait;
    bench.up(&session, 150);
    bench.up(&session, 120);
    bench.restart(2 * SECOND);
    bench.pass(SECOND);
    // It came twice, and its SMF's node has told one from the other.
    assert_eq!(bench.smfs[0].reports.len(), 1);
    assert_eq!(bench.smfs[0].node.counters().duplicates_in_progress, 1);
    assert_eq!(bytes(&bench), [150]);
    bench.smfs[0].answer_to(0, Answer::Accept);
    bench.settle();
    assert_eq!(bytes(&bench), [150, 120], "what came meanwhile had to wait");
}

fn bytes(bench: &Bench) -> Vec<u64> {
    let usage = bench.smfs[0].reports.iter().flat_map(|report| &report.report.usage_reports);
    usage.map(|usage| usage.volume.unwrap().total.unwrap()).collect()
}

/// Whatever an octet is changed to: it is read as something, or refused.
#[test]
fn damaged_octets_do_no_harm() {
    let mut bench = Bench::new(2);
    bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    let header = bench.n4.header(bench.now);
    let records: Vec<_> = bench.n4.store().iter().filter_map(|session| bench.n4.record(session)).collect();
    let (mut headers, mut sessions) = (0, 0);
    for at in 0..header.len() {
        for octet in [0, 1, 0x7f, 0xff] {
            let mut damaged = header.clone();
            damaged[at] = octet;
            let Some(header) = Header::read(&damaged) else { continue };
            headers += 1;
            let mut n4 = bench.fresh(&header);
            n4.restore(bench.now, &header, [(records[0].clone(), ())], |(), _| {});
            n4.tick(bench.now);
        }
    }
    let header = Header::read(&header).unwrap();
    for at in 0..records[0].len() {
        for octet in [0, 1, 0x7f, 0xff] {
            let mut damaged = records[0].clone();
            damaged[at] = octet;
            let mut n4 = bench.fresh(&header);
            n4.restore(bench.now, &header, [(damaged, ())], |(), restored| {
                sessions += u32::from(restored.is_ok());
            });
            n4.tick(bench.now.plus(20 * SECOND));
        }
    }
    assert!(headers > 0 && sessions > 0 && Header::read(b"").is_none());
}

/// Of `n4::portable`'s version 1.
const HEADER: &str = "
058094ebdc0381d382d6060001087570662e7465737404c633640107060400000000000001010004c633646404c63364
64e544018094ebdc038094ebdc0301010000010101010000150100000000000000000000010000000000000000001801
0001000000000000000000000000000001000000000000
";
const RECORD: &str = "
0101010080808080290001018094ebdc03000101010101780000018094ebdc038094ebdc030200000000010104c63364
64e5448080808020388094ebdc038d012138008900000000000000010000010000270001020050007400510004000000
010068000400000000003f0003020000004b0004ee6b2801004c0004ee6b2801004200313f0000000000000096000000
000000009600000000000000000000000000000001000000000000000100000000000000000043000400000000004500
04ee6b280100460004ee6b280180808080200101c6336464000001010100810100010a2d018000018080800800000002
01ff010000018080800800000000000101010101010102ff010100000000000000000102010101010201010101000000
0000000201010001000104c000020a000000000001010101000000000109000001010100000000010100000000000164
00000000000000010a0000000000000000
";

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |text, octet| text + &format!("{octet:02x}"))
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let octets = digits.as_bytes().chunks(2).map(|two| str::from_utf8(two).unwrap());
    octets.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
}

/// What a process of this version writes, and reads. Octets that change without another `VERSION` would be read as something that nobody said.
#[test]
fn a_version_has_its_octets() {
    let mut bench = Bench::new(1);
    let every = UrrParameters { period: Some(10), ..threshold(100) };
    let triggers = ReportingTriggers::PERIO | ReportingTriggers::VOLTH;
    let session = bench.establish(0, &measured(1, vec![urr(1, triggers, every)]));
    bench.smfs[0].answer = Answer::Wait;
    bench.up(&session, 150);
    bench.up(&session, 120);
    let record = bench.n4.store().iter().find_map(|session| bench.n4.record(session)).unwrap();
    let written = (bench.n4.header(bench.now), record);
    assert!(
        written == (octets(HEADER), octets(RECORD)),
        "this version packs otherwise, and would misread what the last one wrote: give `n4::portable` another VERSION, then \
         write its octets here: {} {}",
        hex(&written.0),
        hex(&written.1)
    );
    let header = Header::read(&octets(HEADER)).unwrap();
    let mut n4 = bench.fresh(&header);
    let mut restored = 0;
    n4.restore(bench.now, &header, [(octets(RECORD), ())], |(), session| {
        restored += u32::from(session.is_ok())
    });
    assert_eq!((restored, n4.held(), n4.node().outstanding()), (1, bench.n4.held(), 1));
}
