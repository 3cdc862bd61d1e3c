//! Things by number; a number that became free is given out again.

/// Things by number.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keeps a thing and tells its number.
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                if let Some(place) = self.entries.get_mut(number as usize) {
                    *place = Some(thing);
                }
                number
            }
            None => {
                self.entries.push(Some(thing));
                self.entries.len() as u32 - 1
            }
        }
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.entries.get_mut(number as usize)?.take();
        if thing.is_some() {
            self.free.push(number);
        }
        thing
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }
}
