//! Columns of text. A long cell makes its column wide; nothing is cut, so a line can be copied and grepped.

use std::fmt::Write as _;

/// Rows of cells, the first row the headings. The last column is not padded. Cells are escaped already.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == N {
                let _ = writeln!(out, "{cell}");
            } else {
                let _ = write!(out, "{cell:<width$}  ", width = widths[column]);
            }
        }
    }
    out
}
