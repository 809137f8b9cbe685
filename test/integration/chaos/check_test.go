// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// check waits until the members have what they need and nothing else, and judges the deletions.
func (c *chaos) check(ctx context.Context) {
	GinkgoHelper()
	var found map[spot]instance
	var picked map[*placement]map[string]bool
	last := ""
	Eventually(func(ctx context.Context) (err error) {
		defer func() {
			if err != nil && err.Error() != last {
				last = err.Error()
				GinkgoWriter.Println(time.Now().Format(clockFormat), "waiting:", last)
			}
		}()
		c.revive(ctx)
		if without := c.judgeAll(); len(without) > 0 {
			return StopTrying(strings.Join(without, "\n"))
		}
		if found, err = look(ctx); err != nil {
			return err
		}
		for _, object := range c.gone {
			if there, err := exists(ctx, object); err != nil || there {
				return errors.Join(err, fmt.Errorf("%T %s is still being deleted", object, object.GetName()))
			}
		}
		if picked, err = c.picked(found); err != nil {
			return err
		}
		return errors.Join(compare(c.neededWith(picked), found), c.catchesUp(found))
	}).WithContext(ctx).Should(Succeed(), c.history)
	Expect(c.judgeAll()).To(BeEmpty(), c.history)
	c.note("the members have what they need")
	for p, holds := range picked {
		p.holds = holds
	}
	c.settled(found)
}

// history describes a failure: all changes and faults that can be its cause.
func (c *chaos) history() string {
	return "Changes and faults since the last check:\n" + strings.Join(c.log, "\n")
}

// judgeAll judges the deletions since the last call.
func (c *chaos) judgeAll() []string {
	deletions := c.since(c.judged)
	causes, without := c.judge(deletions)
	for why, n := range causes {
		c.counts[why] += n
	}
	c.judged += len(deletions)
	return without
}

// picked are the members that PickN placements have chosen. The model does not know which.
func (c *chaos) picked(found map[spot]instance) (map[*placement]map[string]bool, error) {
	all := map[*placement]map[string]bool{}
	for _, p := range c.placements {
		if !p.exists || !p.picks {
			continue
		}
		holds, err := c.pickedBy(p, found)
		if err != nil {
			return nil, err
		}
		all[p] = holds
	}
	return all, nil
}

// pickedBy finds them by an object that is always in the placement.
func (c *chaos) pickedBy(p *placement, found map[spot]instance) (map[string]bool, error) {
	always := object{"ConfigMap", p.namespace, "settings"}
	if p.side != "" {
		always.name += "-" + p.side
	}
	holds, fits := map[string]bool{}, 0
	for _, member := range c.members {
		_, has := found[spot{member, always}]
		matches := c.matches(p, member)
		if matches {
			fits++
		}
		switch {
		case has && !matches:
			return nil, fmt.Errorf("placement %s is on %s, which does not match", p, member)
		case has:
			holds[member] = true
		case p.holds[member]:
			return nil, fmt.Errorf("placement %s is not on %s, which it has to keep", p, member)
		}
	}
	if want := min(p.n, fits); len(holds) != want {
		return nil, fmt.Errorf("placement %s is on %v, not on %d members", p, holds, want)
	}
	return holds, nil
}

// neededWith are the objects that members must have if PickN placements have chosen these.
func (c *chaos) neededWith(picked map[*placement]map[string]bool) map[spot]int {
	swap := func() {
		for p := range picked {
			p.holds, picked[p] = picked[p], p.holds
		}
	}
	swap()
	defer swap()
	return c.needed()
}

// compare returns an error unless the members have what they need, and nothing else but data that
// nobody may delete.
func compare(needed map[spot]int, found map[spot]instance) error {
	var wrong []string
	for s, value := range needed {
		has, there := found[s]
		switch {
		case !there || has.ending:
			wrong = append(wrong, "missing: "+s.String())
		case value != anyValue && has.value != strconv.Itoa(value):
			wrong = append(wrong, fmt.Sprintf("%s has value %s, not %d", s, has.value, value))
		}
	}
	for s, has := range found {
		if _, is := needed[s]; !is && !isRetained(s, has, found) {
			wrong = append(wrong, "not needed: "+s.String())
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// isRetained is true for a claim that is retained, and for a namespace that contains one.
func isRetained(s spot, has instance, found map[spot]instance) bool {
	if s.kind == "PersistentVolumeClaim" {
		return has.retained
	}
	for other, of := range found {
		if s.kind == "Namespace" && other.kind == "PersistentVolumeClaim" && other.member == s.member && other.namespace == s.name && of.retained {
			return true
		}
	}
	return false
}
