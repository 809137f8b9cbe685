// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// fakeSource returns its fields.
type fakeSource struct {
	holds material
	err   error
}

func (s *fakeSource) load(context.Context) (material, error) { return s.holds, s.err }
func (s *fakeSource) String() string                         { return "test" }

// lateSource has nothing for a while.
type lateSource struct{ found atomic.Pointer[material] }

func (s *lateSource) String() string { return "test" }

func (s *lateSource) load(context.Context) (material, error) {
	if found := s.found.Load(); found != nil {
		return *found, nil
	}
	return material{}, errors.New("not yet")
}

// of returns a leaf of the CA with the CA as bundle.
func of(t *testing.T, by *ca, now time.Time) material {
	t.Helper()
	cert, key, err := by.sign([]string{"a"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return material{cert: cert, key: key, bundle: by.cert}
}

// step refreshes, and checks the invariant: the previously published bundle verifies the served
// certificate.
func step(t *testing.T, c *Certificates) {
	t.Helper()
	before := c.bundle
	if err := c.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if before != nil && !verifies(before, c.parsed.Leaf, c.clock.Now()) {
		t.Error("serves what the published bundle does not verify")
	}
	if !verifies(c.bundle, c.parsed.Leaf, c.clock.Now()) {
		t.Error("publishes a bundle that does not verify what is served")
	}
}

func TestCertificates_NewCAWaitsForItsBundle(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	first, second := mustCA(t, start), mustCA(t, start)
	source := &fakeSource{holds: of(t, first, start)}
	c := newCertificates(source, fakeClock)
	step(t, c)
	old := source.holds
	source.holds = of(t, second, start)

	step(t, c)
	if !bytes.Equal(c.served.cert, old.cert) {
		t.Error("serves the new certificate at once")
	}
	if !bytes.Contains(c.bundle, second.cert) || !bytes.Contains(c.bundle, first.cert) {
		t.Error("does not publish both CAs")
	}
	fakeClock.Step(handover - time.Second)
	step(t, c)
	if !bytes.Equal(c.served.cert, old.cert) {
		t.Error("serves the new certificate too soon")
	}
	fakeClock.Step(time.Second)
	step(t, c)
	if !bytes.Equal(c.served.cert, source.holds.cert) {
		t.Error("does not serve the new certificate")
	}
	if !bytes.Contains(c.bundle, first.cert) {
		t.Error("does not trust what another replica may still serve")
	}
}

func TestCertificates_SameCAIsServedAtOnce(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	by := mustCA(t, start)
	source := &fakeSource{holds: of(t, by, start)}
	c := newCertificates(source, fakeClock)
	told := &countingListener{}
	c.AddListener(told)
	step(t, c)
	source.holds = of(t, by, start)
	step(t, c)
	if !bytes.Equal(c.served.cert, source.holds.cert) {
		t.Error("does not serve the new certificate")
	}
	step(t, c)
	if told.times != 2 {
		t.Errorf("listeners were told %d times, want 2", told.times)
	}
}

type countingListener struct{ times int }

func (l *countingListener) Enqueue() { l.times++ }

func TestCertificates_ExpiredCertificateIsReplacedAtOnce(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	source := &fakeSource{holds: of(t, mustCA(t, start), start)}
	c := newCertificates(source, fakeClock)
	step(t, c)
	fakeClock.Step(leafLifetime + time.Second)
	source.holds = of(t, mustCA(t, fakeClock.Now()), fakeClock.Now())
	if err := c.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(c.served.cert, source.holds.cert) {
		t.Error("still serves a certificate that no client accepts")
	}
}

func TestCertificates_UnreadableSourceKeepsServedCertificate(t *testing.T) {
	source := &fakeSource{holds: of(t, mustCA(t, start), start)}
	c := newCertificates(source, testingclock.NewFakeClock(start))
	step(t, c)
	served := c.served
	for name, broken := range map[string]*fakeSource{
		"an error":        {err: errors.New("no answer")},
		"half written":    {holds: material{cert: served.cert[:10], key: served.key}},
		"key of another":  {holds: material{cert: served.cert, key: of(t, mustCA(t, start), start).key}},
		"nothing at all":  {},
		"not even a leaf": {holds: material{cert: []byte("x"), key: []byte("y")}},
	} {
		c.source = broken
		if err := c.refresh(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if !bytes.Equal(c.served.cert, served.cert) {
			t.Errorf("%s: serves something else", name)
		}
	}
}

func TestCertificates_ReportBundleChanges(t *testing.T) {
	source := &fakeSource{holds: of(t, mustCA(t, start), start)}
	c := newCertificates(source, testingclock.NewFakeClock(start))
	told := func() bool {
		select {
		case <-c.BundleChanged():
			return true
		default:
			return false
		}
	}
	for i, want := range []bool{true, false} {
		step(t, c)
		if told() != want {
			t.Errorf("look %d: told is %v", i, !want)
		}
	}
	source.holds = of(t, mustCA(t, start), start)
	step(t, c)
	if !told() {
		t.Error("a new CA is not told")
	}
}

func TestCertificates_StartServesFirstCertificateAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &lateSource{}
		c := newCertificates(source, clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		time.Sleep(time.Second)
		if _, err := c.GetCertificate(nil); !errors.Is(err, errNoCertificate) {
			t.Errorf("got %v, want that there is none", err)
		}
		found := of(t, mustCA(t, time.Now()), time.Now())
		source.found.Store(&found)
		if bundle, err := c.CABundle(ctx); err != nil || len(bundle) == 0 {
			t.Errorf("bundle %q, error %v", bundle, err)
		}
		if cert, key := c.CurrentCertKeyContent(); len(cert) == 0 || len(key) == 0 {
			t.Error("no certificate after the first")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := newCertificates(source, clock.RealClock{}).WaitForFirst(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("waits for what never comes: %v", err)
		}
	})
}

func TestAuthoritySource_ReplicasShareOneAuthority(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	hub := fake.NewClientBuilder().Build()
	replica := func() *Certificates {
		return newCertificates(&authoritySource{hub: hub, clock: fakeClock, namespace: "ns", names: []string{"a"}}, fakeClock)
	}
	one, other := replica(), replica()
	step(t, one)
	step(t, other)
	if !bytes.Equal(one.bundle, other.bundle) || bytes.Equal(one.served.key, other.served.key) {
		t.Fatal("the replicas do not share the authority, or share the key of their leaf")
	}
	acceptEachOther := func(when string) {
		t.Helper()
		if !verifies(one.bundle, other.parsed.Leaf, fakeClock.Now()) || !verifies(other.bundle, one.parsed.Leaf, fakeClock.Now()) {
			t.Error(when + ": a bundle of one does not verify the certificate of the other")
		}
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: SecretName}}
	read := func() {
		t.Helper()
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
	}
	read()
	delete(secret.Data, keyCurrentKey)
	if err := hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	step(t, one)
	acceptEachOther("one has rotated by hand, the other has not looked")
	step(t, other)
	acceptEachOther("both have")

	known := one.bundle
	if err := hub.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	step(t, one)
	step(t, other)
	acceptEachOther("somebody deleted the Secret")
	if !bytes.Equal(known, one.bundle) {
		t.Error("the authority was not written again as it was")
	}

	for range 40 { // Two years, in steps of more than a leaf's life.
		fakeClock.Step(leafLifetime * 5 / 2)
		if err := errors.Join(one.refresh(t.Context()), other.refresh(t.Context())); err != nil {
			t.Fatal(err)
		}
		acceptEachOther("time went by")
	}
}

func TestAuthoritySource_ConcurrentStartsAgree(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	missed := false
	hub := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if err == nil && !missed {
				missed = true // It was written between the second replica's read and write.
				return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
			}
			return err
		},
	}).Build()
	var replicas []*Certificates
	for range 2 {
		c := newCertificates(&authoritySource{hub: hub, clock: fakeClock, namespace: "ns", names: []string{"a"}}, fakeClock)
		step(t, c)
		replicas = append(replicas, c)
	}
	if !missed || !bytes.Equal(replicas[0].bundle, replicas[1].bundle) {
		t.Error("the replicas trust other authorities")
	}
}

func TestAuthoritySource_KeepsAuthorityOfOlderGateway(t *testing.T) {
	fakeClock := testingclock.NewFakeClock(start)
	old := mustCA(t, start.Add(-time.Hour))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: SecretName}, Data: map[string][]byte{
		keyCurrentCert: old.cert, keyCurrentKey: old.key, keyBundle: old.cert,
	}}
	hub := fake.NewClientBuilder().WithObjects(secret).Build()
	c := newCertificates(&authoritySource{hub: hub, clock: fakeClock, namespace: "ns", names: []string{"a"}}, fakeClock)
	step(t, c)
	if !verifies(old.cert, c.parsed.Leaf, start) {
		t.Error("the CA that is in the configurations does not verify what is served")
	}
}

func TestFromFiles_FollowsChanges(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(m material) {
		t.Helper()
		for name, content := range map[string][]byte{"cert": m.cert, "key": m.key, "ca": m.bundle} {
			if err := os.WriteFile(path(name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	by := mustCA(t, time.Now())
	c := FromFiles(path("cert"), path("key"), path("ca"))
	if err := c.refresh(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want that the files are missing", err)
	}
	for range 2 {
		wanted := of(t, by, time.Now())
		write(wanted)
		step(t, c)
		if !bytes.Equal(c.served.cert, wanted.cert) {
			t.Error("serves another file")
		}
	}
	write(material{cert: bytes.Repeat([]byte("x"), maxFileBytes+1)})
	if err := c.refresh(t.Context()); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v, want that it is too large", err)
	}
}
