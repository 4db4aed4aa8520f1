//! What was probably meant: names in a sentence, and the one that a slip was nearest to.

/// The names between backquotes and commas.
pub(super) fn listed(names: &[String]) -> String {
    let mut text = String::new();
    for (i, name) in names.iter().enumerate() {
        text.push_str(match i {
            0 => "",
            _ if i + 1 == names.len() => " and ",
            _ => ", ",
        });
        text.push('`');
        text.push_str(name);
        text.push('`');
    }
    text
}

/// The known name that `typed` is most likely a slip of.
pub(super) fn nearest<'a>(typed: &str, known: &'a [String]) -> Option<&'a str> {
    let typed: Vec<char> = typed.to_lowercase().replace('_', "-").chars().take(64).collect();
    let allowed = (typed.len() / 3).clamp(1, 3);
    known
        .iter()
        .map(|name| (edit_distance(&typed, &name.to_lowercase().chars().collect::<Vec<_>>()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.as_str())
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    let mut left_a = None;
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        let mut left_b = None;
        for (j, &y) in b.iter().enumerate() {
            // `row` and `last` hold b.len() + 1 entries, so that j and j + 1 are in range.
            let mut cost = (last[j + 1] + 1).min(row[j] + 1).min(last[j] + usize::from(x != y));
            if i > 0 && j > 0 && left_a == Some(y) && left_b == Some(x) {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
            left_b = Some(y);
        }
        left_a = Some(x);
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let known: Vec<String> = ["mtu", "queues", "network-instances"].map(str::to_owned).to_vec();
        assert_eq!(nearest("mut", &known), Some("mtu"));
        assert_eq!(nearest("queue", &known), Some("queues"));
        assert_eq!(nearest("network_instance", &known), Some("network-instances"));
        assert_eq!(nearest("banana", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn distance() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        for (a, b, expected) in
            [("", "", 0), ("abc", "", 3), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ab", "ba", 1)]
        {
            assert_eq!(edit_distance(&chars(a), &chars(b)), expected, "{a} {b}");
            assert_eq!(edit_distance(&chars(b), &chars(a)), expected, "{b} {a}");
        }
    }
}
