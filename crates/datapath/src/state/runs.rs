//! Many short arrays in one: what each session has a few of, side by side, so that a packet finds an element by one number.

/// Where a session's elements are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    start: u32,
    len: u16,
}

impl Run {
    /// Number of the run's `index`th element.
    pub const fn element(self, index: u16) -> Option<u32> {
        if index < self.len { Some(self.start + index as u32) } else { None }
    }

    /// Number of its first element, if it has any.
    pub const fn start(self) -> u32 {
        self.start
    }

    /// How many elements it has.
    pub const fn len(self) -> usize {
        self.len as usize
    }

    const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// The elements of all runs. A run that was freed is used again by the next of the same length.
#[derive(Debug)]
pub struct Runs<T> {
    elements: Vec<T>,
    /// Starts of free runs, by length.
    free: Vec<Vec<u32>>,
}

impl<T: Copy + Default> Runs<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self { elements: Vec::new(), free: Vec::new() }
    }

    /// A new run of default elements.
    pub fn allocate(&mut self, len: u16) -> Run {
        if len == 0 {
            return Run::default();
        }
        let freed = self.free.get_mut(len as usize).and_then(Vec::pop);
        let start = freed.unwrap_or_else(|| {
            let start = self.elements.len();
            self.elements.resize(start + len as usize, T::default());
            start as u32
        });
        let run = Run { start, len };
        self.get_mut(run).fill(T::default());
        run
    }

    /// Gives a run back.
    pub fn free(&mut self, run: Run) {
        if run.len == 0 {
            return;
        }
        let len = run.len as usize;
        if self.free.len() <= len {
            self.free.resize_with(len + 1, Vec::new);
        }
        if let Some(list) = self.free.get_mut(len) {
            list.push(run.start);
        }
    }

    /// A run's elements.
    pub fn get_mut(&mut self, run: Run) -> &mut [T] {
        self.elements.get_mut(run.range()).unwrap_or_default()
    }

    /// A run's elements.
    pub fn get(&self, run: Run) -> &[T] {
        self.elements.get(run.range()).unwrap_or_default()
    }

    /// All elements, to be reached by number.
    #[inline(always)]
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    /// All elements, to be reached by number.
    #[inline(always)]
    pub fn elements_mut(&mut self) -> &mut [T] {
        &mut self.elements
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn runs_are_apart_and_used_again() {
        let mut runs = Runs::<u32>::new();
        let a = runs.allocate(2);
        let b = runs.allocate(3);
        runs.get_mut(a).fill(1);
        runs.get_mut(b).fill(2);
        assert_eq!((runs.get(a), runs.get(b)), (&[1, 1][..], &[2, 2, 2][..]));
        assert_eq!(runs.elements()[b.element(2).unwrap() as usize], 2);
        assert_eq!((b.element(3), Run::default().element(0)), (None, None));
        runs.free(a);
        let again = runs.allocate(2);
        assert_eq!((again, runs.get(again)), (a, &[0, 0][..]));
        assert_eq!(runs.elements().len(), 5);
        let none = runs.allocate(0);
        runs.free(none);
    }
}
