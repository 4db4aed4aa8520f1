//! `ctl n4 --follow`: what SMFs ask for, as it comes.

use crate::exit::Failure;
use crate::output;
use api::{CtlClient, N4Log, Question};
use std::time::Duration;

/// How often a UPF is asked for what is new.
const EVERY: Duration = Duration::from_millis(500);

/// Shows what comes, until somebody ends it or the reader goes away: as rows of a table, or as a line of JSON each.
pub fn follow(client: &mut CtlClient, mut query: N4Log, json: bool) -> Result<(), Failure> {
    let mut first = true;
    loop {
        let told = client.ask(&query)?;
        let new = if json {
            told.entries.iter().map(output::line).collect::<Result<String, _>>()?
        } else if first {
            query.show(&told).to_string()
        } else if told.entries.is_empty() && told.missed == 0 {
            String::new()
        } else {
            let page = query.show(&told).to_string();
            page.split_once('\n').map_or_else(String::new, |(_, rows)| rows.into())
        };
        if !output::more(&new)? {
            return Ok(());
        }
        first = false;
        query = N4Log { from: Some(told.next), limit: N4Log::MOST, ..query };
        std::thread::sleep(EVERY);
    }
}
