//! Terminals and desktops elsewhere.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[Recogniser {
    protocol: Protocol::Ssh,
    carriers: Carriers::TCP,
    ports: &[22],
    first: First::Of(b"S"),
    strength: Strength::Magic,
    probe: ssh,
}];

/// RFC 4253 §4.2: both sides begin with "SSH-", the version, and what they are.
fn ssh(message: &mut Message<'_>) -> Answer {
    if !message.begins || !message.has(0, b"SSH-") {
        return Answer::No;
    }
    if message.is_from_client()
        && let Some(line) = message.line(255)
    {
        message.sheet.agent.set(line);
    }
    Answer::Is
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::classify::{Answer, Carrier};
    use crate::protocols::show::{client, server};

    #[test]
    fn ssh_is_known_by_its_first_line_of_either_side() {
        assert_eq!(client(Protocol::Ssh, Carrier::Tcp, 2222, b"SSH-2.0-OpenSSH_9.2\r\n"), Answer::Is);
        assert_eq!(server(Protocol::Ssh, Carrier::Tcp, 22, b"SSH-1.99-Cisco-1.25\n"), Answer::Is);
        assert_eq!(client(Protocol::Ssh, Carrier::Tcp, 22, b"SSH"), Answer::No);
    }
}
