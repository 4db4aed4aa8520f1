//! Vectors, ciphers and the clock.

use crate::{Area, Finding, Program, Verdict};
use machine::Machine;
use ran::simd::Processor;
use ran::simd::cipher::CipherUnit;

pub(crate) fn examine(machine: &Machine, program: &Program, findings: &mut Vec<Finding>) {
    let processor = &machine.processor;
    let add = |what: &str, found: String, reason: String| Finding::ok(Area::Processor, what, found, reason);
    let model = if processor.model.is_empty() { "unknown" } else { &processor.model };
    let virtually = if processor.is_virtual() { ", virtual machine" } else { "" };
    findings.push(add(
        "model",
        format!("{model}{virtually}"),
        "the packet path is plain code, compiled for the processor family's least member".into(),
    ));
    if processor.features.is_empty() {
        let reason = "/proc/cpuinfo names no instruction sets: what Millrace would choose here is not known";
        findings.push(add("vectors", "unknown".into(), reason.into()));
    } else {
        vectors(machine, program, findings);
    }
    findings.push(clock(machine));
}

/// What the code would choose that asks the processor.
fn vectors(machine: &Machine, program: &Program, findings: &mut Vec<Finding>) {
    let processor = &machine.processor;
    let add = |what: &str, found: String, reason: &str| Finding::ok(Area::Processor, what, found, reason);
    let is_x86 = processor.has(&["sse2"]);
    if program.dpdk.is_some() && is_x86 && !processor.has(&["sse4_2"]) {
        let found = "no SSE4.2".to_owned();
        let reason = "DPDK as Debian builds it needs SSE4.2 and refuses to start: there are no ports";
        let remedy = "another processor, or a virtual machine that is told its host's (QEMU: -cpu host); DPDK built for this one will do, too";
        findings.push(add("SSE4.2", found, reason).but(Verdict::WontWork, remedy));
    }
    let found = if is_x86 { "SSE2" } else { "plain code" };
    let reason = "sessions and flows are found by comparing a bucket's keys at once; SSE2 is in every x86-64 processor, and wider \
                  compares lost more by the call than they won";
    findings.push(add("look-ups", found.into(), reason));

    let ldpc = Processor::ALL.into_iter().rfind(|vectors| processor.has(vectors.features()));
    let ldpc = ldpc.unwrap_or(Processor::Any);
    let reason =
        "the LDPC decoder takes the widest vectors for octets that there are; the encoder takes AVX2 at most";
    let finding = add("LDPC", ldpc.to_string(), reason);
    let remedy = "a processor with AVX2, or a virtual machine that is told its host's (QEMU: -cpu host)";
    let plain = ldpc == Processor::Any;
    findings.push(if plain { finding.but(Verdict::CouldBeBetter, remedy) } else { finding });

    let cipher = CipherUnit::ALL.into_iter().rfind(|unit| processor.has(unit.features()));
    let cipher = cipher.unwrap_or(CipherUnit::Any);
    let reason = "NEA2 is AES: VAES ciphers two or four blocks an instruction, AES-NI one, and plain code is several times slower";
    let finding = add("NEA2", cipher.to_string(), reason);
    let remedy =
        "a processor with AES instructions, or a virtual machine that is told its host's (QEMU: -cpu host)";
    let plain = cipher == CipherUnit::Any;
    findings.push(if plain { finding.but(Verdict::CouldBeBetter, remedy) } else { finding });
}

fn clock(machine: &Machine) -> Finding {
    let clock = &machine.clock;
    let add = |found: String, reason: &str| Finding::ok(Area::Processor, "clock", found, reason);
    let remedy = "hypervisors pass an invariant counter on request (QEMU: -cpu host,migratable=no,+invtsc)";
    let source = clock.source.as_deref().unwrap_or("unknown");
    if machine.processor.features.is_empty() {
        return add(format!("kernel: {source}"), "whether the time-stamp counter is invariant is not known");
    }
    if !clock.invariant_counter {
        let reason = "the time-stamp counter is not invariant (constant_tsc, nonstop_tsc): Millrace reads the kernel's monotonic clock, \
                      at some 25 ns and more for each burst";
        return add(format!("no invariant counter; kernel: {source}"), reason)
            .but(Verdict::CouldBeBetter, remedy);
    }
    if clock.source.is_some() && !clock.counter_is_trusted() {
        let reason = "Millrace reads the time-stamp counter, which says that it is invariant. The kernel has given it up: if cores' \
                      counters differ, so do their meters and timers";
        return add(format!("invariant counter, given up by the kernel; kernel: {source}"), reason)
            .but(Verdict::CouldBeBetter, format!("dmesg | grep -i tsc says why; {remedy}"));
    }
    add(
        format!("invariant time-stamp counter; kernel: {source}"),
        "Millrace reads the counter once a burst, for some nanoseconds",
    )
}
