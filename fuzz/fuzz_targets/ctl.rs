//! The control socket's lines: requests as the server reads them, answers as the client reads them.
#![no_main]

use api::{CtlError, Each, Question, Request};
use libfuzzer_sys::fuzz_target;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

fuzz_target!(|data: &[u8]| {
    for line in data.split(|octet| *octet == b'\n') {
        again::<Request>(line);
        again::<CtlError>(line);
        Request::each(&mut Answers(line));
    }
});

/// A line, read as the answer to each question.
struct Answers<'a>(&'a [u8]);

impl Each for Answers<'_> {
    fn each<Q: Question>(&mut self) {
        again::<Q::Answer>(self.0);
    }
}

/// What was read is written as one line and read alike.
fn again<T: Serialize + DeserializeOwned + PartialEq + Debug>(line: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(line) else { return };
    let text = serde_json::to_string(&value).expect("what was read can be written");
    assert!(!text.contains('\n'));
    assert_eq!(serde_json::from_str::<T>(&text).ok().as_ref(), Some(&value), "{text}");
}
