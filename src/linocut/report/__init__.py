"""From ledgers to pages and tables; no model runs here."""
