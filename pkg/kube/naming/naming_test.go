// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// random is a valid name of an object with that many characters.
func random(r *rand.Rand, length int) string {
	const ends, middle = "abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz0123456789---"
	name := make([]byte, length)
	for i := range name {
		name[i] = middle[r.IntN(len(middle))]
		if i == 0 || i == length-1 || i > 0 && name[i-1] == '.' {
			name[i] = ends[r.IntN(len(ends))]
		}
		if i > 1 && i < length-2 && name[i-1] != '-' && name[i-1] != '.' && r.IntN(8) == 0 {
			name[i] = '.'
		}
	}
	return strings.ReplaceAll(string(name), "-.", "x.")
}

func TestLabelValue_FitsForNamesOfEveryLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const key = "example.com/name"
	for length := 1; length <= validation.DNS1123SubdomainMaxLength; length++ {
		for range 20 {
			name := random(r, length)
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
				t.Fatalf("%q is no name: %v", name, wrong)
			}
			value := LabelValue(name)
			if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 || value == "" {
				t.Errorf("%q becomes label %q: %v", name, value, wrong)
			}
			if length <= validation.LabelValueMaxLength && value != name {
				t.Errorf("%q fits, and becomes %q", name, value)
			}
			if value != LabelValue(name) || length > validation.LabelValueMaxLength && value == LabelValue(name[:length-1]+"~") {
				t.Errorf("%q: the label does not tell it from others", name)
			}
			if short := Within(name, 200); len(short) > 200 || len(validation.IsDNS1123Subdomain(short)) > 0 {
				t.Errorf("%q becomes name %q", name, short)
			}
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "1"}}}
			Label(object, key, name)
			if Labelled(object, key) != name || object.Annotations["a"] != "1" {
				t.Errorf("%q cannot be read from %+v", name, object.ObjectMeta)
			}
		}
	}
}

func TestLabel_ChangesNoAnnotationsThatObjectsShare(t *testing.T) {
	shared := map[string]string{"a": "1"}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: shared}}
	Label(object, "key", strings.Repeat("n", 64))
	if len(shared) != 1 {
		t.Errorf("the annotations of others became %v", shared)
	}
}

func TestLabelled_IgnoresAnAnnotationOfAnotherName(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"key": "short"}, Annotations: map[string]string{"key": strings.Repeat("n", 64)}}}
	if got := Labelled(object, "key"); got != "short" {
		t.Errorf("got %q", got)
	}
}

// The value of a label is stored, so that another value would be another object.
func TestWithin_StaysTheSame(t *testing.T) {
	if got, want := Within(strings.Repeat("n", 70), 63), "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-85069ddf41673897"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
