//! Compiles the C shim and names the DPDK libraries.
//!
//! `pkg-config --static --libs libdpdk` can't be used on Debian 12 (it asks for packages that no one needs), so the
//! libraries are named here. They go in whole: a driver registers itself in a constructor that nothing refers to.
//! `DPDK_LINK=dynamic` links the shared libraries instead, which load every driver plug-in of the installation.

use std::path::Path;
use std::process::Command;

/// Core libraries and the drivers that Millrace offers, with what they refer to.
const STATIC: &[&str] = &[
    "eal",
    "kvargs",
    "telemetry",
    "ring",
    "rcu",
    "mempool",
    "mempool_ring",
    "mbuf",
    "net",
    "meter",
    "ethdev",
    "pci",
    "bus_pci",
    "bus_vdev",
    "timer",
    "hash",
    "lpm",
    "rib",
    "fib",
    "cryptodev",
    "security",
    "gso",
    "sched",
    "ip_frag",
    "vhost",
    "dmadev",
    "common_iavf",
    "net_null",
    "net_ring",
    "net_tap",
    "net_af_packet",
    "net_af_xdp",
    "net_memif",
    "net_pcap",
    "net_bond",
    "net_virtio",
    "net_ixgbe",
    "net_i40e",
    "net_iavf",
    "net_ice",
];
/// A driver for ciphers and the library that it needs: Debian has them for x86-64 alone.
const CIPHER: (&str, &str) = ("crypto_ipsec_mb", "IPSec_MB");
/// What those need of the system.
const SYSTEM: &[&str] = &["numa", "pcap", "xdp", "bpf", "bsd", "elf", "z", "m", "dl", "pthread"];
/// What the shim itself refers to.
const DYNAMIC: &[&str] = &[
    "eal",
    "ethdev",
    "mbuf",
    "mempool",
    "ring",
    "kvargs",
    "net",
    "net_bond",
    "hash",
    "lpm",
    "fib",
    "cryptodev",
    "bus_vdev",
];

fn fail(why: &str) -> ! {
    println!("cargo::error=DPDK is needed to build this crate, but {why}");
    println!("cargo::error=on Debian 12: apt-get install libdpdk-dev pkg-config build-essential");
    println!("cargo::error=or build Millrace without it: cargo build --no-default-features");
    std::process::exit(1)
}

fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let output = match Command::new("pkg-config").args(arguments).arg("libdpdk").output() {
        Ok(output) => output,
        Err(error) => fail(&format!("pkg-config can't be run ({error})")),
    };
    if !output.status.success() {
        fail(
            String::from_utf8_lossy(&output.stderr)
                .lines()
                .next()
                .unwrap_or("pkg-config doesn't find libdpdk"),
        );
    }
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

/// A copy of the AF_PACKET driver that calls these functions of `shim/af_packet.c`, which says why, instead of the C library's.
fn own_af_packet(library: &str) -> String {
    const NAME: &str = "millrace_net_af_packet";
    const OURS: [&str; 4] =
        ["setsockopt=mr_setsockopt", "mmap64=mr_mmap", "close=mr_close", "memcpy=mr_ring_copy"];
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let copy = format!("{out}/lib{NAME}.a");
    let redefined = OURS.iter().flat_map(|pair| ["--redefine-sym", pair]);
    let status = Command::new("objcopy").args(redefined).args([library, &copy]).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("objcopy of {library} failed ({status})")),
        Err(error) => fail(&format!("objcopy (binutils) can't be run ({error})")),
    }
    println!("cargo::rustc-link-search=native={out}");
    NAME.into()
}

fn main() {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DPDK_LINK");

    let version = pkg_config(&["--modversion"]).join("");
    if !version.starts_with("22.11") {
        println!(
            "cargo::warning=DPDK {version} found; the shim is written for 22.11 and tested with no other"
        );
    }
    let mut build = cc::Build::new();
    let sources = [
        "shim.c",
        "af_packet.c",
        "bond.c",
        "counter.c",
        "crypto.c",
        "flow.c",
        "ipsec_mb.c",
        "meter.c",
        "peer.c",
        "steer.c",
    ];
    for source in sources {
        build.file(format!("shim/{source}"));
    }
    build.opt_level(3).warnings(true).flag("-Wno-unused-parameter");
    for flag in pkg_config(&["--cflags"]) {
        // DPDK's own headers are not ours to warn about.
        match flag.strip_prefix("-I") {
            Some(path) => build.flag("-isystem").flag(path),
            None => build.flag(&flag),
        };
    }
    build.compile("millrace_dpdk_shim");

    let directory = pkg_config(&["--variable=libdir"]).join("");
    println!("cargo::rustc-link-search=native={directory}");
    let drivers: Vec<&str> = STATIC.iter().filter(|library| library.starts_with("net_")).copied().collect();
    println!("cargo::rustc-env=MILLRACE_DPDK_DRIVERS={}", drivers.join(","));
    if std::env::var("DPDK_LINK").is_ok_and(|how| how == "dynamic") {
        // Which there are is known when it runs.
        println!("cargo::rustc-env=MILLRACE_DPDK_DRIVERS=");
        for library in DYNAMIC {
            println!("cargo::rustc-link-lib=dylib=rte_{library}");
        }
        return;
    }
    for library in STATIC {
        let file = format!("{directory}/librte_{library}.a");
        if !Path::new(&file).exists() {
            fail(&format!("{file} is missing (DPDK_LINK=dynamic links shared libraries)"));
        }
        let library =
            if *library == "net_af_packet" { own_af_packet(&file) } else { format!("rte_{library}") };
        println!("cargo::rustc-link-lib=static:-bundle,+whole-archive={library}");
    }
    let (driver, library) = CIPHER;
    if [format!("librte_{driver}.a"), format!("lib{library}.a")]
        .iter()
        .all(|file| Path::new(&directory).join(file).exists())
    {
        println!("cargo::rustc-link-lib=static:-bundle,+whole-archive=rte_{driver}");
        println!("cargo::rustc-link-lib=static:-bundle={library}");
    }
    for library in SYSTEM {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}
