//! Files that nfstuned writes and nfstune reads, in JSON. Only with the feature `state`, which the helper does not have.

pub mod advice;
pub mod history;
pub mod learned;
pub mod status;

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::kernel::read_small;

/// None: there is no such file. What is not understood is an error with its place.
fn read<T: DeserializeOwned>(path: &Path, limit: usize) -> Result<Option<T>> {
    let text = match read_small(path, limit) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|e| Error::Text {
        path: path.to_owned(),
        line: u64::try_from(e.line()).unwrap_or_default(),
        why: e.to_string(),
    })
}
