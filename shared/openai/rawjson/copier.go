package rawjson

// Copier copies an object or array member by member and leaves some out. Runs of kept members are copied in one piece, with the white
// space between them. Values may be replaced on the way.
type Copier struct {
	dst  []byte
	text []byte
	from int  // start of what is kept but not yet copied
	prev int  // end of the last member that was seen, at first the byte after the opening bracket
	kept bool // whether any member was kept
	hole bool // whether the last member was left out
}

// Copy begins a copy of a valid object or array, appended to dst.
func Copy(dst, text []byte) Copier {
	return Copier{dst: dst, text: text, prev: skipSpace(text, 0) + 1}
}

// Member keeps or leaves out the next member (or element), which begins and ends at these offsets. Members must come in their order.
func (c *Copier) Member(start, end int, keep bool) {
	switch {
	case keep && c.hole && c.kept: // with the comma and space before it
		c.from = c.prev
	case keep && c.hole:
		c.from = start
	case !keep && !c.hole:
		c.dst = append(c.dst, c.text[c.from:c.prev]...)
	}
	c.kept = c.kept || keep
	c.hole = !keep
	c.prev = end
}

// Edit leaves out the bytes from start to end, which belong to the member that was kept last. What is appended to the result before the next
// call takes their place.
func (c *Copier) Edit(start, end int) *[]byte {
	c.dst = append(c.dst, c.text[c.from:start]...)
	c.from = end
	return &c.dst
}

// Add appends raw text as a further member. It may only be followed by Add and End.
func (c *Copier) Add(raw ...[]byte) {
	if !c.hole {
		c.dst = append(c.dst, c.text[c.from:c.prev]...)
		c.from = c.prev
	}
	c.hole = true
	if c.kept {
		c.dst = append(c.dst, ',')
	}
	for _, r := range raw {
		c.dst = append(c.dst, r...)
	}
	c.kept = true
}

// End copies the rest and gives the extended dst.
func (c *Copier) End() []byte {
	if c.hole {
		c.from = c.prev
	}
	return append(c.dst, c.text[c.from:]...)
}
