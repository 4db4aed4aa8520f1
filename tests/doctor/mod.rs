//! `millrace doctor` on this machine, and on machines that are not there.

use super::{ends, millrace, written};
#[cfg(feature = "dpdk")]
use serde_json::Value;
use testing::{Directory, MadeUp};

fn doctor(machine: &MadeUp, args: &[&str], code: i32) -> (String, String) {
    let root = machine.0.0.to_str().unwrap();
    ends(&millrace(&[&["doctor", "--root", root], args].concat()).output().unwrap(), code)
}

/// The finding of this name, out of `--json`.
#[cfg(feature = "dpdk")]
fn finding(told: &str, what: &str) -> Value {
    let told: Value = serde_json::from_str(told).unwrap();
    let findings = told["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["what"] == what)
        .unwrap_or_else(|| panic!("{what}: {told}"))
        .clone()
}

/// Whatever this machine lacks, without a configuration nothing of it hinders a build that has DPDK.
#[test]
#[cfg(feature = "dpdk")]
fn this_machine_is_examined_without_root_and_without_harm() {
    let output = millrace(&["doctor"]).output().unwrap();
    let code = output.status.code();
    let (page, stderr) = ends(&output, code.unwrap());
    assert_eq!(stderr, "");
    assert_eq!(code, Some(i32::from(page.contains("  won't work"))), "{page}");
    for heading in ["PROCESSOR", "MEMORY", "NETWORK", "PORTS", "ACCELERATORS"] {
        assert!(page.contains(&format!("{heading}\n")), "{page}");
    }
    assert!(page.contains("DPDK 2"), "{page}");
    let json = millrace(&["doctor", "--json"]).output().unwrap();
    let told: Value = serde_json::from_str(&ends(&json, code.unwrap()).0).unwrap();
    assert!(told["machine"]["memory"]["total"].as_u64().unwrap() > 0);
    let words = ["ok", "could-be-better", "wont-work"];
    assert!(words.iter().any(|word| told["verdict"] == *word), "{told}");
    for finding in told["findings"].as_array().unwrap() {
        let has_remedy = finding["remedy"].is_string();
        assert_eq!(finding["verdict"] != "ok", has_remedy, "what could be better has a remedy: {finding}");
        assert!(finding["reason"].as_str().unwrap().len() > 10, "{finding}");
    }
}

#[test]
#[cfg(feature = "dpdk")]
fn a_server_fits_its_configuration_until_a_nic_goes_back_to_the_kernel() {
    let (machine, directory) = (MadeUp::server("doctor-cli-server"), Directory::new("doctor-cli"));
    let ports = "[node]\nid = 'upf.example.org'\n[[port]]\nname = 'access'\ndevice = '0000:3b:00.0'\n\
                 [[port]]\nname = 'core'\ndevice = '0000:3b:00.1'\n";
    let interfaces = "[[interface]]\nname = 'n3'\nport = 'access'\nroles = ['n3']\naddresses = ['192.0.2.1/24']\n\
                      [[interface]]\nname = 'n6'\nport = 'core'\nroles = ['n6']\naddresses = ['203.0.113.1/24']\n";
    let file = written(&directory, &format!("{ports}{interfaces}[workers]\ncount = 2\n"));
    let (page, _) = doctor(&machine, &["--config", &file], 0);
    assert!(page.contains("worker 0 runs on core 10: isolated, on node 1 as a port is"), "{page}");
    assert!(page.contains(" 0 won't work\n"), "{page}");
    assert_eq!(finding(&doctor(&machine, &["-c", &file, "--json"], 0).0, "LDPC")["found"], "avx512");

    machine.nic("0000:3b:00.1", "ice", 1, 41);
    let (page, stderr) = doctor(&machine, &["--config", &file], 1);
    assert!(page.contains("  won't work       port core "), "{page}");
    assert!(
        page.contains("> # modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci 0000:3b:00.1\n"),
        "{page}"
    );
    assert_eq!(stderr, "", "the page has said it");
    let port = finding(&doctor(&machine, &["-c", &file, "--json"], 1).0, "port core");
    assert_eq!((&port["verdict"], &port["area"]), (&"wont-work".into(), &"configuration".into()));
    // `--set` comes over the file, as for `run`.
    let set = ["--set", "port.core.device=net_null0"];
    assert!(doctor(&machine, &[&["-c", &file][..], &set].concat(), 0).0.contains(" 0 won't work\n"));
}

#[test]
fn what_can_not_be_read_is_said_and_a_wrong_file_is_no_finding() {
    let machine = MadeUp::laptop("doctor-cli-laptop");
    machine.file("sys/devices/system/cpu/isolated", "every\u{1b}[2Jone");
    let code = i32::from(!cfg!(feature = "dpdk"));
    let (page, _) = doctor(&machine, &[], code);
    assert!(
        page.contains("NOT READ: counts as missing\n") && page.contains("says `every\u{fffd}[2Jone`"),
        "{page}"
    );
    // Without ports there is no UPF.
    assert_eq!(page.contains("not built in"), code == 1, "{page}");

    let directory = Directory::new("doctor-cli-wrong");
    let file = written(&directory, "[worker]\n");
    let (stdout, stderr) = doctor(&machine, &["--config", &file], 2);
    assert!(stdout.is_empty() && stderr.contains("unknown key `worker`"), "{stdout}{stderr}");
    let nowhere = millrace(&["doctor", "--root", "/nonexistent"]).output().unwrap();
    assert_eq!(ends(&nowhere, 2).1, "error: --root: there is no directory /nonexistent\n");
}
