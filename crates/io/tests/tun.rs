//! A TUN interface in a network namespace of its own, with the kernel's ICMP as the other side.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use io::tun::{Tun, TunError};
use std::process::Command;
use std::time::{Duration, Instant};

fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An echo request from 10.99.0.2 to 10.99.0.1 with `length` bytes of data.
fn echo_request(length: usize) -> Vec<u8> {
    let mut icmp = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1];
    icmp.extend((0..length).map(|i| i as u8));
    let sum = checksum(&icmp).to_be_bytes();
    icmp[2..4].copy_from_slice(&sum);
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0, 10, 99, 0, 2, 10, 99, 0, 1];
    let total = ((packet.len() + icmp.len()) as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&total);
    let sum = checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend(icmp);
    packet
}

#[test]
fn the_kernel_answers_through_it() {
    testing::in_namespace("answers_body");
}

#[test]
#[ignore = "run by `the_kernel_answers_through_it` in a namespace of its own"]
fn answers_body() {
    let tun = match Tun::open("ue0", true) {
        Ok(tun) => tun,
        Err(error @ TunError::Device(_)) => {
            return testing::skipped(error);
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(tun.name(), "ue0");
    assert!(matches!(Tun::open("ue0", true), Err(TunError::Interface { .. })), "one process has it");
    let script = "echo 1 > /proc/sys/net/ipv6/conf/ue0/disable_ipv6
                  ip address add 10.99.0.1/24 dev ue0; ip link set ue0 mtu 9000 up";
    assert!(Command::new("sh").args(["-ec", script]).status().unwrap().success());
    let mut packet = [0; 10_000];
    assert_eq!(tun.read(&mut packet).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    for length in [0, 56, 1400, 8900] {
        let request = echo_request(length);
        tun.write(&request).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let n = loop {
            match tun.read(&mut packet) {
                Ok(n) => break n,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
            assert!(Instant::now() < deadline, "no answer to {length} bytes");
        };
        let reply = &packet[..n];
        assert_eq!(n, request.len());
        assert_eq!(
            (reply[20], &reply[12..16], &reply[16..20]),
            (0, &[10, 99, 0, 1][..], &[10, 99, 0, 2][..])
        );
        assert_eq!(&reply[24..], &request[24..]);
    }
    assert!(tun.write(&[]).is_err(), "not an IP packet");
}

#[test]
fn names_are_checked_before_the_kernel_sees_them() {
    for name in ["", "a-name-that-is-too-long", "a/b", "a b", "..", "x%d", "a\0b"] {
        assert!(matches!(Tun::open(name, false), Err(TunError::Name(_))), "{name:?}");
    }
}
