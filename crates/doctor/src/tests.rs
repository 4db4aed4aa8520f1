//! Verdicts over machines that are not there.
#![allow(clippy::unwrap_used)]

use super::*;
use config::Config;
use ran::simd::Processor;
use ran::simd::cipher::CipherUnit;
use testing::MadeUp;

fn program() -> Program {
    let drivers =
        vec!["net_null", "net_tap", "net_af_packet", "net_af_xdp", "net_memif", "net_ice", "net_virtio"];
    let dpdk = Dpdk { version: "DPDK made up".into(), drivers: Some(drivers) };
    Program { dpdk: Some(dpdk), gpus: None, pinnable: |cores| cores, remarks: |_| Vec::new() }
}

fn look(made_up: &MadeUp, config: Option<&Config>) -> Report {
    examine(&Machine::read(&made_up.0.0), &program(), config)
}

/// The findings of this name.
fn of<'a>(report: &'a Report, what: &str) -> Vec<&'a Finding> {
    report.findings.iter().filter(|finding| finding.what == what).collect()
}

/// The only one.
fn one<'a>(report: &'a Report, what: &str) -> &'a Finding {
    let [found] = of(report, what)[..] else { panic!("{what}: {report}") };
    found
}

fn better(report: &Report) -> Vec<&str> {
    let better = report.findings.iter().filter(|finding| finding.verdict == Verdict::CouldBeBetter);
    better.map(|finding| finding.what.as_str()).collect()
}

/// Two ports on these devices.
fn config(first: &str, second: &str, rest: &str) -> Config {
    let text = format!(
        "[node]\nid = 'upf.example.org'\n[[port]]\nname = 'p0'\n{first}\n[[port]]\nname = 'p1'\n{second}\n\
         [[interface]]\nname = 'n3'\nport = 'p0'\nroles = ['n3']\naddresses = ['192.0.2.1/24']\n\
         [[interface]]\nname = 'n6'\nport = 'p1'\nroles = ['n6']\naddresses = ['203.0.113.1/24']\n{rest}\n"
    );
    config::parse("test", &text, &[], &[]).unwrap()
}

/// Without a configuration nothing is wanted that is not there: a laptop is one to try things on.
#[test]
fn a_laptop_works_and_could_be_better() {
    let report = look(&MadeUp::laptop("doctor-laptop"), None);
    assert_eq!(report.verdict, Verdict::CouldBeBetter, "{report}");
    let expected = [
        "isolated cores",
        "frequency governor",
        "huge pages",
        "N4's receive buffer",
        "AF_PACKET",
        "AF_XDP",
        "TAP",
    ];
    assert_eq!(better(&report), expected, "{report}");
    assert_eq!(
        (one(&report, "LDPC").found.as_str(), one(&report, "NEA2").found.as_str()),
        ("avx2", "aes-ni")
    );
    let isolated = one(&report, "isolated cores").remedy.as_deref().unwrap();
    assert!(isolated.contains("isolcpus=1-3 nohz_full=1-3"), "{isolated}");
    let packet = one(&report, "AF_PACKET");
    assert!(packet.reason.ends_with("lacks CAP_NET_RAW, CAP_NET_ADMIN"), "{packet:?}");
    assert!(packet.remedy.as_deref().unwrap().contains("--ambient-caps +net_raw,+net_admin"), "{packet:?}");
    assert_eq!(one(&report, "CUDA").found, "no CUDA device");
    assert_eq!(one(&report, "order of choice").found, "1 2 3 0");
    let page = report.to_string();
    assert!(page.ends_with(" ok, 7 could be better, 0 won't work\n"), "{page}");
    assert!(page.contains("\n                 > # sysctl -w vm.nr_hugepages=512\n"), "{page}");
}

#[test]
fn a_server_that_is_prepared_is_as_it_should_be() {
    let made_up = MadeUp::server("doctor-server");
    let report = look(&made_up, None);
    assert_eq!(better(&report), ["AF_XDP"], "{report}");
    assert_eq!(
        (one(&report, "LDPC").found.as_str(), one(&report, "NEA2").found.as_str()),
        ("avx512", "vaes-512")
    );
    // Isolated cores of the NICs' node first.
    assert!(one(&report, "order of choice").found.starts_with("10 11 12 13 14 15 2 3 4 5 6 7 "), "{report}");

    let (first, second) = ("device = '0000:3b:00.0'", "device = '0000:3b:00.1'");
    let report = look(&made_up, Some(&config(first, second, "[workers]\ncount = 3")));
    assert_eq!(better(&report), ["AF_XDP"], "{report}");
    assert!(one(&report, "packet memory").found.ends_with("in huge pages"), "{report}");
    let port = one(&report, "port p1");
    assert_eq!(
        (port.verdict, port.reason.as_str()),
        (Verdict::Ok, "bound to vfio-pci; DPDK drives it by net_ixgbe or net_i40e or net_iavf or net_ice")
    );
    assert!(
        one(&report, "workers").reason.contains("worker 2 runs on core 12: isolated, on node 1 as a port is"),
        "{report}"
    );

    // Cores that are far from the port, and two hyperthreads of one.
    let report = look(&made_up, Some(&config(first, second, "[workers]\ncores = [2, 18]")));
    let said: Vec<&str> = of(&report, "workers").iter().map(|finding| finding.reason.as_str()).collect();
    let with = |text: &str| said.iter().filter(|said| said.contains(text)).count();
    assert_eq!(
        (with("each packet crosses"), with("hyperthread of the same"), with("not isolated")),
        (4, 1, 1),
        "{said:#?}"
    );
    assert_eq!(report.verdict, Verdict::CouldBeBetter);
}

#[test]
fn a_nic_that_is_not_ready_hinders_whoever_wants_it_and_nobody_else() {
    let made_up = MadeUp::server("doctor-nic");
    let wants = config("device = '0000:3b:00.0'", "driver = 'null'", "");
    let verdicts = |made_up: &MadeUp| {
        let (without, with) = (look(made_up, None), look(made_up, Some(&wants)));
        let port = one(&with, "port p0");
        let nic = of(&without, "NIC 0000:3b:00.0").first().map(|nic| nic.verdict);
        (nic, port.verdict, port.reason.clone(), port.remedy.clone().unwrap_or_default())
    };
    let (better, wont) = (Some(Verdict::CouldBeBetter), Verdict::WontWork);
    made_up.nic("0000:3b:00.0", "ice", 1, 40);
    let (nic, port, why, remedy) = verdicts(&made_up);
    assert_eq!((nic, port, why.as_str()), (better, wont, "the kernel's driver ice has it"));
    assert_eq!(remedy, "# modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci 0000:3b:00.0");
    // Bound, and the group is somebody else's.
    made_up.nic("0000:3b:00.0", "vfio-pci", 1, 77);
    let (nic, port, why, remedy) = verdicts(&made_up);
    assert_eq!((nic, port, remedy.as_str()), (better, wont, "# chown USER /dev/vfio/77"), "{why}");
    // Memory that can't be locked.
    made_up.nic("0000:3b:00.0", "vfio-pci", 1, 40);
    made_up.process("0000000000000000", "0-31", "65536");
    let (nic, port, why, _) = verdicts(&made_up);
    assert_eq!((nic, port), (Some(Verdict::Ok), wont), "{why}");
    // Whoever has CAP_IPC_LOCK may lock any.
    made_up.process("0000000000004000", "0-31", "65536");
    let (_, port, why, _) = verdicts(&made_up);
    assert_eq!(port, Verdict::Ok, "{why}");
    // A NIC that no driver here is for works through the kernel.
    made_up.nic("0000:3b:00.0", "mlx5_core", 1, 40);
    let (nic, port, why, _) = verdicts(&made_up);
    assert_eq!((nic, port, why.as_str()), (Some(Verdict::Ok), wont, "this build has no net_mlx5"));
    // None at all.
    std::fs::remove_dir_all(made_up.0.0.join("sys/bus/pci/devices/0000:3b:00.0")).unwrap();
    let (nic, port, why, _) = verdicts(&made_up);
    assert_eq!(
        (nic, port, why.as_str()),
        (None, wont, "there is no NIC at this address; there are: 0000:3b:00.1")
    );
}

#[test]
fn a_virtual_machine_with_a_broken_counter_is_told_so() {
    let made_up = MadeUp::virtual_machine("doctor-vm");
    let report = look(&made_up, None);
    assert_eq!(report.verdict, Verdict::WontWork);
    assert_eq!(one(&report, "SSE4.2").verdict, Verdict::WontWork);
    let clock = one(&report, "clock");
    assert_eq!(
        (clock.verdict, clock.found.as_str()),
        (Verdict::CouldBeBetter, "no invariant counter; kernel: hpet")
    );
    assert!(clock.remedy.as_deref().unwrap().contains("+invtsc"));
    assert_eq!(one(&report, "cores").verdict, Verdict::CouldBeBetter);
    assert_eq!(
        (one(&report, "LDPC").verdict, one(&report, "LDPC").found.as_str()),
        (Verdict::CouldBeBetter, "any")
    );
    // It says that it is invariant, and the kernel doesn't believe it.
    made_up.file("proc/cpuinfo", "model name : Q\nflags : sse2 sse4_2 constant_tsc nonstop_tsc\n");
    let report = look(&made_up, None);
    assert!(one(&report, "clock").found.contains("given up by the kernel"), "{report}");
    assert_eq!(report.verdict, Verdict::CouldBeBetter);
    // Without DPDK there is nothing to run on, whatever the machine.
    let report = examine(&Machine::read(&made_up.0.0), &Program { dpdk: None, ..program() }, None);
    assert_eq!((report.verdict, one(&report, "DPDK").verdict), (Verdict::WontWork, Verdict::WontWork));
}

#[test]
fn a_container_without_sys_is_judged_by_what_it_shows() {
    let made_up = MadeUp::container("doctor-container");
    made_up.file("sys/fs/cgroup/memory.max", "536870912\n");
    made_up.file("sys/fs/cgroup/memory.current", "0\n");
    let report = look(&made_up, None);
    assert_eq!(
        (one(&report, "cores").found.as_str(), one(&report, "NICs").found.as_str()),
        ("unknown", "unknown")
    );
    assert!(one(&report, "free").reason.contains("/sys/fs/cgroup/memory.max"), "{report}");
    assert_eq!(one(&report, "AF_PACKET").verdict, Verdict::Ok);
    assert_eq!(report.unread.len(), 1, "{:?}", report.unread);
    // What can't be seen is not said to be missing.
    let packet = ("driver = 'af_packet'\niface = 'n3'", "device = '0000:01:00.0'");
    let report = look(&made_up, Some(&config(packet.0, packet.1, "")));
    for port in ["port p0", "port p1"] {
        let port = one(&report, port);
        assert!(port.verdict == Verdict::Ok && port.reason.ends_with("is not known"), "{port:?}");
    }
    // But memory is.
    let much = config(packet.0, packet.1, "[limits]\nbuffered-packets = 1000000");
    let memory = look(&made_up, Some(&much));
    let memory = one(&memory, "packet memory");
    assert!(memory.verdict == Verdict::WontWork && memory.reason.contains("memory.max"), "{memory:?}");
    assert!(memory.remedy.as_deref().unwrap().contains("buffered-packets"), "{memory:?}");
}

#[test]
fn a_configuration_is_held_against_the_machine() {
    let made_up = MadeUp::laptop("doctor-fit");
    made_up.process("0000000000203000", "0-3", "65536");
    made_up.interface("n3", 1500, true);
    made_up.interface("n6", 1500, false);
    let packet = |iface: &str, rest: &str| format!("driver = 'af_packet'\niface = '{iface}'\n{rest}");
    let port = |first: &str, rest: &str| {
        let report = look(&made_up, Some(&config(first, &packet("n6", ""), rest)));
        one(&report, "port p0").clone()
    };
    assert_eq!(port(&packet("n3", ""), "").verdict, Verdict::Ok);
    let down = look(&made_up, Some(&config(&packet("n3", ""), &packet("n6", ""), "")));
    assert_eq!(one(&down, "port p1").remedy.as_deref(), Some("# ip link set n6 up"));
    assert!(down.verdict < Verdict::WontWork, "{down}");
    let absent = port(&packet("n4", ""), "");
    assert!(
        absent.verdict == Verdict::WontWork && absent.reason.ends_with("it has: n3 n6 wlan0"),
        "{absent:?}"
    );
    let mtu = port(&packet("n3", "mtu = 9000"), "");
    assert_eq!((mtu.verdict, mtu.remedy.as_deref()), (Verdict::WontWork, Some("# ip link set n3 mtu 9000")));
    let xdp = port("driver = 'af_xdp'\niface = 'n3'", "");
    assert!(xdp.verdict == Verdict::WontWork && xdp.reason.ends_with("CAP_IPC_LOCK"), "{xdp:?}");
    assert_eq!(port("driver = 'tap'\niface = 'tap0'", "").verdict, Verdict::Ok);
    std::fs::remove_file(made_up.0.0.join("dev/net/tun")).unwrap();
    assert_eq!(port("driver = 'tap'\niface = 'tap0'", "").verdict, Verdict::WontWork);
    let pcap = port("device = 'net_pcap0,iface=n3'", "");
    assert!(
        pcap.verdict == Verdict::WontWork && pcap.remedy.as_deref().unwrap().contains("net_memif"),
        "{pcap:?}"
    );
    // Members of an aggregated port are looked at one by one.
    let bond = config(
        "bond = { mode = 'active-backup', members = ['net_null0', '0000:01:00.0'] }",
        &packet("n6", ""),
        "",
    );
    let report = look(&made_up, Some(&bond));
    let verdicts: Vec<_> = of(&report, "port p0").iter().map(|port| port.verdict).collect();
    assert_eq!(verdicts, [Verdict::Ok, Verdict::WontWork], "{report}");
}

#[test]
fn workers_memory_and_addresses_are_held_against_it_too() {
    let made_up = MadeUp::laptop("doctor-fit-rest");
    made_up.process("0000000000003000", "0-3", "65536");
    let null = |rest: &str| look(&made_up, Some(&config("driver = 'null'", "device = 'net_null1'", rest)));
    let report = null("[workers]\nmemory = 'huge-pages'");
    let memory = one(&report, "packet memory");
    assert!(
        memory.verdict == Verdict::WontWork
            && memory.remedy.as_deref().unwrap().starts_with("# sysctl -w vm.nr_hugepages=")
    );
    // What the remedy says is enough.
    let pages: u64 = memory.remedy.as_deref().unwrap().rsplit('=').next().unwrap().parse().unwrap();
    made_up.huge_pages(pages - 1, pages - 1);
    assert_eq!(one(&null("[workers]\nmemory = 'huge-pages'"), "packet memory").verdict, Verdict::WontWork);
    made_up.huge_pages(pages, pages);
    assert_eq!(one(&null("[workers]\nmemory = 'huge-pages'"), "packet memory").verdict, Verdict::Ok);

    assert_eq!(null("[workers]\ncount = 9\npin = 'always'").verdict, Verdict::WontWork);
    assert!(one(&null("[workers]\ncount = 2"), "workers").reason.contains("the kernel places the 2 workers"));
    let narrow =
        Program { pinnable: |cores| cores.into_iter().filter(|core| *core < 2).collect(), ..program() };
    let cores = config("driver = 'null'", "device = 'net_null1'", "[workers]\ncores = [1, 3]");
    let report = examine(&Machine::read(&made_up.0.0), &narrow, Some(&cores));
    let refused = of(&report, "workers").into_iter().find(|finding| finding.verdict == Verdict::WontWork);
    assert!(refused.is_some_and(|finding| finding.reason.starts_with("core 3 is not online")), "{report}");

    let trie =
        "Local:\n     |-- 192.0.2.1\n        /32 host LOCAL\n     |-- 198.51.100.1\n        /32 host LOCAL\n";
    made_up.file("proc/thread-self/net/fib_trie", trie);
    let n4 = |listen: &str| {
        let rest = format!("[n4]\nlisten = '{listen}'\npeers = ['198.51.100.7/32']");
        one(&null(&rest), "N4").clone()
    };
    assert_eq!((n4("198.51.100.1:8805").verdict, n4("0.0.0.0:8805").verdict), (Verdict::Ok, Verdict::Ok));
    assert_eq!(n4("198.51.100.2:8805").verdict, Verdict::WontWork);
    assert!(n4("198.51.100.1:805").reason.ends_with("CAP_NET_BIND_SERVICE"));
    made_up.interface("n3", 1500, true);
    let packet = config("driver = 'af_packet'\niface = 'n3'", "driver = 'null'", "");
    let report = look(&made_up, Some(&packet));
    assert_eq!(
        (one(&report, "address").found.as_str(), one(&report, "address").verdict),
        ("192.0.2.1", Verdict::CouldBeBetter)
    );
}

#[test]
fn huge_pages_on_another_node_than_the_nic_are_seen() {
    let made_up = MadeUp::server("doctor-nodes");
    made_up.file("sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "0\n");
    let report = look(&made_up, None);
    let nodes = one(&report, "huge pages by node");
    assert!(
        nodes.remedy.as_deref().unwrap().ends_with("/node1/hugepages/hugepages-2048kB/nr_hugepages"),
        "{nodes:?}"
    );
}

#[test]
fn gpus_are_told_with_what_they_lack() {
    let made_up = MadeUp::laptop("doctor-gpu");
    let cuda = |made_up: &MadeUp| one(&look(made_up, None), "CUDA").clone();
    made_up.file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t NVIDIA L4\n");
    assert!(cuda(&made_up).reason.contains("no /dev/nvidia0"));
    made_up.file("dev/nvidia0", "");
    assert_eq!(cuda(&made_up).verdict, Verdict::CouldBeBetter);
    made_up.file("etc/ld.so.cache", "libcuda.so.1");
    let found = cuda(&made_up);
    assert_eq!((found.verdict, found.found.as_str()), (Verdict::Ok, "NVIDIA L4 (0000:01:00.0)"));
    // The driver has the last word, where it can be asked.
    let asked = |gpus| {
        let report = examine(&Machine::read(&made_up.0.0), &Program { gpus: Some(gpus), ..program() }, None);
        one(&report, "CUDA").clone()
    };
    let found = asked(Ok(vec!["L4 (sm_89)".to_owned()]));
    assert_eq!((found.verdict, found.found.as_str()), (Verdict::Ok, "NVIDIA L4 (0000:01:00.0)"));
    assert!(found.reason.ends_with("L4 (sm_89)"), "{}", found.reason);
    let found = asked(Err("the driver is for CUDA 12.2; 13.0 is needed".to_owned()));
    assert_eq!(found.verdict, Verdict::CouldBeBetter);
    assert!(found.reason.ends_with("13.0 is needed"), "{}", found.reason);
}

#[test]
fn what_ethtool_would_change_is_said() {
    let made_up = MadeUp::laptop("doctor-remarks");
    made_up.process("0000000000003000", "0-3", "65536");
    made_up.interface("n3", 1500, true);
    let remarks = |name: &str| vec![format!("{name} merges: ethtool -K {name} gro off lro off")];
    let packet = config("driver = 'af_packet'\niface = 'n3'", "driver = 'null'", "");
    let report = examine(&Machine::read(&made_up.0.0), &Program { remarks, ..program() }, Some(&packet));
    let port = one(&report, "port p0");
    assert_eq!(
        (port.reason.as_str(), port.remedy.as_deref()),
        ("n3 merges", Some("# ethtool -K n3 gro off lro off"))
    );
}

/// The kernel's names stand for what the code asks the processor for.
#[test]
fn this_processors_names_say_what_it_has() {
    let machine = Machine::read("/".as_ref());
    if machine.processor.features.is_empty() {
        return testing::skipped("/proc/cpuinfo names no instruction sets");
    }
    for vectors in Processor::ALL {
        assert_eq!(machine.processor.has(vectors.features()), vectors.is_here(), "{vectors}");
    }
    for unit in CipherUnit::ALL {
        assert_eq!(machine.processor.has(unit.features()), unit.is_here(), "{unit}");
    }
}

#[test]
fn a_long_reason_is_wrapped_and_a_remedy_is_not() {
    let finding = Finding::ok(Area::Ports, "x", "y", "word ".repeat(60))
        .but(Verdict::WontWork, format!("# {}", "c".repeat(200)));
    let page = Report::new(vec![finding], vec!["f".into()]).to_string();
    assert!(page.lines().all(|line| line.chars().count() <= 110 || line.contains("> # c")), "{page}");
    assert_eq!(page.matches("word").count(), 60);
    assert!(page.contains("NOT READ") && page.ends_with("0 ok, 0 could be better, 1 won't work\n"));
}
