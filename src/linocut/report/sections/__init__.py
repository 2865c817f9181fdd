"""The sections of the page, each as the values its template shows."""
