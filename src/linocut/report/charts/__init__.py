"""Charts as inline SVG: colours come from the page's palette, so that they follow its theme."""
