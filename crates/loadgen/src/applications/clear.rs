//! What is said in clear.

use super::{Length, Message, Subject, between, random};
use crate::rng::SplitMix64;
use std::net::IpAddr;

/// A request and its answer (RFC 9112); more of them on the same connection.
pub(super) fn http(rng: &mut SplitMix64, subject: &Subject<'_>, length: Length) -> Vec<Message> {
    let mut messages = Vec::new();
    for _ in 0..=length.times(between(rng, 1, 4)) {
        let request = format!(
            "GET /images/{:08x}.png HTTP/1.1\r\nHost: {}\r\nConnection: keep-alive\r\nUser-Agent: Mozilla/5.0 (Linux; Android 15; K) \
             AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36\r\nAccept: image/avif,image/webp,*/*;q=0.8\r\n\
             Accept-Encoding: gzip, deflate\r\nAccept-Language: en-GB,en;q=0.9\r\n\r\n",
            rng.next_u64() as u32,
            subject.name
        );
        let size = between(rng, 300, 2400) as usize;
        let answer = format!(
            "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: image/png\r\nContent-Length: {size}\r\nCache-Control: max-age=3600\r\n\r\n"
        );
        messages.push(Message::client(request.into_bytes()));
        messages.push(Message::server([answer.into_bytes(), random(rng, size)].concat()));
    }
    messages
}

/// A question for an address, and the answer (RFC 1035 §4).
pub(super) fn dns(rng: &mut SplitMix64, subject: &Subject<'_>) -> Vec<Message> {
    let (kind, address) = match subject.address {
        IpAddr::V4(address) => (1, address.octets().to_vec()),
        IpAddr::V6(address) => (28, address.octets().to_vec()),
    };
    let labels = subject.name.split('.');
    let mut question: Vec<u8> =
        labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    question.extend([0, 0, kind, 0, 1]);
    let number = random(rng, 2);
    let asked = [&number[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &question].concat();
    let told = [
        &number[..],
        &[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0],
        &question,
        // The question's name (§4.1.4), for five minutes.
        &[0xc0, 12, 0, kind, 0, 1, 0, 0, 1, 44, 0, address.len() as u8],
        &address,
    ];
    vec![Message::client(asked), Message::server(told.concat())]
}

/// A packet of SSH (RFC 4253 §6) before keys are there.
fn ssh_packet(content: &[u8]) -> Vec<u8> {
    let padding = 4 + (8 - (content.len() + 9) % 8) % 8;
    let length = (content.len() + padding + 1) as u32;
    [&length.to_be_bytes()[..], &[padding as u8], content, &vec![0; padding]].concat()
}

/// Versions, proposals, what is ciphered.
pub(super) fn ssh(rng: &mut SplitMix64, length: Length) -> Vec<Message> {
    const LISTS: [&str; 10] = [
        "sntrup761x25519-sha512,curve25519-sha256,ecdh-sha2-nistp256",
        "ssh-ed25519,rsa-sha2-512",
        "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com",
        "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com",
        "hmac-sha2-256",
        "hmac-sha2-256",
        "none",
        "none",
        "",
        "",
    ];
    let lists: Vec<u8> = LISTS
        .iter()
        .flat_map(|list| [&(list.len() as u32).to_be_bytes()[..], list.as_bytes()].concat())
        .collect();
    let mut proposal = || ssh_packet(&[&[20][..], &random(rng, 16), &lists, &[0; 5]].concat());
    let (client, server) = (proposal(), proposal());
    let mut messages = vec![
        Message::client(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
        Message::server(b"SSH-2.0-OpenSSH_10.0\r\n".to_vec()),
        Message::client(client),
        Message::server(server),
    ];
    for _ in 0..length.times(8) {
        let (up, down) = (between(rng, 3, 9) as usize * 8, between(rng, 3, 60) as usize * 8);
        messages.extend([Message::client(random(rng, up)), Message::server(random(rng, down))]);
    }
    messages
}

/// A mail is handed over (RFC 5321).
pub(super) fn smtp(rng: &mut SplitMix64, length: Length) -> Vec<Message> {
    let lines = [
        ("220 mail.example.org ESMTP ready", "EHLO client.example.com"),
        ("250-mail.example.org\r\n250-SIZE 52428800\r\n250 8BITMIME", "MAIL FROM:<a@example.com>"),
        ("250 OK", "RCPT TO:<b@example.org>"),
        ("250 OK", "DATA"),
        ("354 End with a dot on a line", "Subject: hello\r\n"),
    ];
    let line = |text: &str| format!("{text}\r\n").into_bytes();
    let said = |(server, client)| [Message::server(line(server)), Message::client(line(client))];
    let mut messages: Vec<Message> = lines.into_iter().flat_map(said).collect();
    for _ in 0..length.times(between(rng, 3, 8)) {
        let text: String = random(rng, 500).iter().map(|octet| char::from(b'a' + octet % 26)).collect();
        messages.push(Message::client(line(&text)));
    }
    messages.extend([Message::client(line(".")), Message::server(line("250 OK"))]);
    messages
}

/// SMB 2 over TCP ([MS-SMB2] §2.2.1): dialects, then ciphered messages.
pub(super) fn smb(rng: &mut SplitMix64, length: Length) -> Vec<Message> {
    let framed = |message: &[u8]| [&(message.len() as u32).to_be_bytes()[..], message].concat();
    let head = |flags: u8| {
        let mut head = [0; 64];
        let fields: [(usize, &[u8]); 4] = [(0, b"\xfeSMB"), (4, &[64]), (14, &[1]), (16, &[flags])];
        for (at, field) in fields {
            head.iter_mut().skip(at).zip(field).for_each(|(to, from)| *to = *from);
        }
        head
    };
    let client = [
        &head(0)[..],
        &[36, 0, 3, 0, 1, 0, 0, 0, 0x7f, 0, 0, 0],
        &random(rng, 16),
        &[0; 8],
        &[2, 2, 0, 3, 0x11, 3],
    ]
    .concat();
    let server = [&head(1)[..], &[65, 0, 1, 0, 0x11, 3, 0, 0], &random(rng, 16), &[0; 40]].concat();
    let mut messages = vec![Message::client(framed(&client)), Message::server(framed(&server))];
    for _ in 0..length.times(between(rng, 4, 10)) {
        let (up, down) = (between(rng, 80, 300) as usize, between(rng, 80, 2800) as usize);
        // Ciphered ones have a header of their own (§2.2.41).
        let mut ciphered = |size| framed(&[b"\xfdSMB".to_vec(), random(rng, 48 + size)].concat());
        messages.extend([Message::client(ciphered(up)), Message::server(ciphered(down))]);
    }
    messages
}
