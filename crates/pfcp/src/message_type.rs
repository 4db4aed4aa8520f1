//! Message types (TS 29.244 §7.3, table 7.3-1).

use std::fmt;

/// What a message is, as in its header's second octet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MessageType(pub u8);

macro_rules! message_types {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl MessageType {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The standard's name, or `None` for a type this crate has no word for.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

message_types! {
    /// §7.4.2.1.
    HEARTBEAT_REQUEST = 1, "Heartbeat Request";
    /// §7.4.2.2.
    HEARTBEAT_RESPONSE = 2, "Heartbeat Response";
    /// §7.4.3.1.
    PFD_MANAGEMENT_REQUEST = 3, "PFD Management Request";
    /// §7.4.3.2.
    PFD_MANAGEMENT_RESPONSE = 4, "PFD Management Response";
    /// §7.4.4.1.
    ASSOCIATION_SETUP_REQUEST = 5, "Association Setup Request";
    /// §7.4.4.2.
    ASSOCIATION_SETUP_RESPONSE = 6, "Association Setup Response";
    /// §7.4.4.3.
    ASSOCIATION_UPDATE_REQUEST = 7, "Association Update Request";
    /// §7.4.4.4.
    ASSOCIATION_UPDATE_RESPONSE = 8, "Association Update Response";
    /// §7.4.4.5.
    ASSOCIATION_RELEASE_REQUEST = 9, "Association Release Request";
    /// §7.4.4.6.
    ASSOCIATION_RELEASE_RESPONSE = 10, "Association Release Response";
    /// §7.4.4.7.
    VERSION_NOT_SUPPORTED_RESPONSE = 11, "Version Not Supported Response";
    /// §7.4.5.1.
    NODE_REPORT_REQUEST = 12, "Node Report Request";
    /// §7.4.5.2.
    NODE_REPORT_RESPONSE = 13, "Node Report Response";
    /// §7.4.6.1.
    SESSION_SET_DELETION_REQUEST = 14, "Session Set Deletion Request";
    /// §7.4.6.2.
    SESSION_SET_DELETION_RESPONSE = 15, "Session Set Deletion Response";
    /// §7.5.2.
    SESSION_ESTABLISHMENT_REQUEST = 50, "Session Establishment Request";
    /// §7.5.3.
    SESSION_ESTABLISHMENT_RESPONSE = 51, "Session Establishment Response";
    /// §7.5.4.
    SESSION_MODIFICATION_REQUEST = 52, "Session Modification Request";
    /// §7.5.5.
    SESSION_MODIFICATION_RESPONSE = 53, "Session Modification Response";
    /// §7.5.6.
    SESSION_DELETION_REQUEST = 54, "Session Deletion Request";
    /// §7.5.7.
    SESSION_DELETION_RESPONSE = 55, "Session Deletion Response";
    /// §7.5.8.
    SESSION_REPORT_REQUEST = 56, "Session Report Request";
    /// §7.5.9.
    SESSION_REPORT_RESPONSE = 57, "Session Report Response";
}

impl MessageType {
    /// Whether this type asks for an answer. Among the types of this table, as of the standard's.
    pub const fn is_request(self) -> bool {
        match self.0 {
            1..=9 => !self.0.is_multiple_of(2),
            12..=17 | 50..=57 => self.0.is_multiple_of(2),
            _ => false,
        }
    }

    /// The type that answers this one, if this one is a request.
    pub const fn response(self) -> Option<Self> {
        if self.is_request() { Some(Self(self.0 + 1)) } else { None }
    }

    /// Whether it belongs to a session, so that its header carries a SEID (§7.2.2.1).
    pub const fn is_session(self) -> bool {
        self.0 >= 50 && self.0 < 100
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "message type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_by_the_next_type() {
        for value in 0..=255 {
            let Some(name) = MessageType(value).name() else { continue };
            let answer = MessageType(value).response();
            assert_eq!(answer.is_some(), name.ends_with("Request"), "{name}");
            if let Some(answer) = answer {
                assert_eq!(answer.name(), Some(name.replace("Request", "Response").as_str()));
            }
        }
    }
}
