//! A process of its own for each test, since EAL starts once in a process's life; and a network namespace that vanishes with it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use dpdk::{DeviceSpec, DpdkPort, Eal, EalConfig, Memory};
use std::panic::Location;
use std::path::Path;
use std::process::Command;

/// Runs the ignored test `body` of the caller's file in its own process, in a new network namespace if `namespace`.
#[track_caller]
pub fn alone(body: &str, namespace: bool) {
    let this = std::env::current_exe().unwrap();
    // A file is a module here, so that its name leads those of its tests.
    let module = Path::new(Location::caller().file()).file_stem().unwrap().to_str().unwrap();
    let body = format!("{module}::{body}");
    let arguments = ["--exact", &body, "--ignored", "--nocapture"];
    let mut command = if namespace {
        if let Some(why) = no_namespace() {
            println!("skipped {body}: {why}");
            return;
        }
        let mut command = Command::new("unshare");
        command.arg("--net").arg(this);
        command
    } else {
        Command::new(this)
    };
    let output = command.args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{body}: {}", output.status);
    assert!(text.contains("1 passed"), "{body} did not run");
}

/// Why network devices can't be made here.
fn no_namespace() -> Option<String> {
    let output = Command::new("unshare").args(["--net", "ip", "link", "add", "type", "veth"]).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!(
            "no network namespace with a veth pair can be made ({}); it needs root",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Some(format!("unshare (util-linux) can't be run: {error}")),
    }
}

pub fn sh(command: &str) {
    let output = Command::new("sh").args(["-ec", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn start(devices: &[&str]) -> Eal {
    let config = EalConfig { memory: Memory::Auto, ..EalConfig::for_devices(devices.iter().copied()) };
    let eal = Eal::init(&config).unwrap_or_else(|error| panic!("{error}"));
    println!("{}", eal.chosen());
    eal
}

pub fn open(eal: &Eal, spec: &DeviceSpec) -> DpdkPort {
    DpdkPort::open(eal, spec).unwrap_or_else(|error| panic!("{error}"))
}
