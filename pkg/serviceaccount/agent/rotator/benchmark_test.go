// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"container/heap"
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/boundtoken"
)

// BenchmarkTokens is what the hub gets to write when 200 accounts on each of 50
// members rotate for the first time, all of them made in the same second: the most
// in one second, and on average while they rotate. Time is simulated; the reconciler
// is the agent's, with a hub and members in memory. Beside it is what a fleet
// without jitter would do: everything in one second.
func BenchmarkTokens(b *testing.B) {
	const members, accounts = 50, 200
	for _, validity := range []time.Duration{10 * time.Minute, time.Hour} {
		b.Run(fmt.Sprintf("rotate/members=%d/accounts=%d/validity=%s", members, accounts, validity), func(b *testing.B) {
			for b.Loop() {
				s := newSimulation(b, members, accounts, validity)
				s.runUntil(validity)
				s.report(b)
			}
		})
	}
}

// TestReconciler_RotatesAFleetWithinTheRefreshWindow is the benchmark's claim, on a smaller fleet.
func TestReconciler_RotatesAFleetWithinTheRefreshWindow(t *testing.T) {
	const members, accounts, validity = 5, 40, time.Hour
	s := newSimulation(t, members, accounts, validity)
	s.runUntil(validity)
	if first, last := s.window(); first < validity*75/100 || last > validity*85/100 {
		t.Errorf("the fleet rotates from %s to %s of %s, want 75 %% to 85 %%", first, last, validity)
	}
	if got := s.tokens; got != 2*members*accounts {
		t.Errorf("%d tokens were issued, want one and one more for each of %d accounts", got, members*accounts)
	}
	if peak, _ := s.writesPerSecond(); peak > 16 {
		t.Errorf("%d writes in one second", peak)
	}
}

// simulation is a fleet whose clock jumps to the next event.
type simulation struct {
	tb       testing.TB
	start    time.Time
	clock    *testingclock.FakePassiveClock
	agents   []*Reconciler
	queue    appointments
	validity time.Duration
	// tokens counts the issued tokens.
	tokens int
	// writes counts writes on the hub, by second since the start.
	writes map[time.Duration]int
}

func newSimulation(tb testing.TB, members, accounts int, validity time.Duration) *simulation {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authenticationv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := &simulation{tb: tb, start: start, clock: testingclock.NewFakePassiveClock(start), validity: validity, writes: map[time.Duration]int{}}
	for i := range members {
		namespace := fmt.Sprintf("fleet-member-m%d", i)
		hub := s.hub(scheme)
		for j := range accounts {
			account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("a%d", j), UID: types.UID(fmt.Sprintf("%d-%d", i, j)), Generation: 1,
			}}
			account.Spec.Rotation.Validity.Duration = validity
			hub.objects[keyOf(account, client.ObjectKeyFromObject(account))] = account
			s.queue = append(s.queue, appointment{at: start, agent: i, name: account.Name})
		}
		s.agents = append(s.agents, &Reconciler{
			Hub: hub, Live: hub, Member: s.member(scheme, i),
			HubNamespace: namespace, AccountNamespace: authenticationv1beta1.AccountNamespace, AgentNamespace: "fleet-system",
			MemberCA: func() ([]byte, error) { return []byte("ca"), nil }, Clock: s.clock, Recorder: &events.FakeRecorder{},
		})
	}
	heap.Init(&s.queue)
	return s
}

// memory is a fake API server with the operations that the reconciler needs.
type memory struct {
	client.Client
	scheme  *runtime.Scheme
	objects map[string]client.Object
	wrote   func()
	// created sets the fields that an API server sets.
	created func(client.Object)
	issue   func(account client.Object, request *authenticationv1.TokenRequest)
}

func keyOf(object client.Object, key client.ObjectKey) string {
	return fmt.Sprintf("%T/%s", object, key)
}

func (m *memory) Scheme() *runtime.Scheme { return m.scheme }

func (m *memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, ok := m.objects[keyOf(into, key)]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	switch to := into.(type) {
	case *authenticationv1beta1.ManagedServiceAccount:
		found.(*authenticationv1beta1.ManagedServiceAccount).DeepCopyInto(to)
	case *corev1.Secret:
		found.(*corev1.Secret).DeepCopyInto(to)
	case *corev1.ServiceAccount:
		found.(*corev1.ServiceAccount).DeepCopyInto(to)
	}
	return nil
}

func (m *memory) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	m.created(object)
	if _, ok := object.(*authenticationv1.TokenReview); ok {
		return nil
	}
	return m.store(object)
}

func (m *memory) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return m.store(object)
}

func (m *memory) store(object client.Object) error {
	object.SetResourceVersion("1")
	m.objects[keyOf(object, client.ObjectKeyFromObject(object))] = object.DeepCopyObject().(client.Object)
	m.wrote()
	return nil
}

func (m *memory) Status() client.SubResourceWriter            { return &memoryStatus{memory: m} }
func (m *memory) SubResource(string) client.SubResourceClient { return &memoryToken{memory: m} }

type memoryStatus struct {
	client.SubResourceWriter
	memory *memory
}

func (s *memoryStatus) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.memory.store(object)
}

type memoryToken struct {
	client.SubResourceClient
	memory *memory
}

func (s *memoryToken) Create(_ context.Context, account client.Object, request client.Object, _ ...client.SubResourceCreateOption) error {
	s.memory.issue(account, request.(*authenticationv1.TokenRequest))
	return nil
}

// hub counts writes.
func (s *simulation) hub(scheme *runtime.Scheme) *memory {
	return &memory{scheme: scheme, objects: map[string]client.Object{}, created: func(client.Object) {},
		wrote: func() { s.writes[s.clock.Now().Sub(s.start).Truncate(time.Second)]++ }}
}

// member is a fake API server that issues tokens.
func (s *simulation) member(scheme *runtime.Scheme, number int) *memory {
	return &memory{
		scheme: scheme, objects: map[string]client.Object{}, wrote: func() {},
		created: func(object client.Object) {
			switch o := object.(type) {
			case *authenticationv1.TokenReview:
				o.Status.Authenticated = true
				o.Status.User.UID = uidIn(o.Spec.Token)
			case *corev1.ServiceAccount:
				o.UID = types.UID(fmt.Sprintf("%d/%s", number, o.Name))
			}
		},
		issue: func(account client.Object, request *authenticationv1.TokenRequest) {
			s.tokens++
			now := s.clock.Now().Unix()
			payload := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`,
				authenticationv1beta1.UsernameIn(account.GetNamespace(), account.GetName()), now, now+*request.Spec.ExpirationSeconds, account.GetUID())
			request.Status.Token = "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
		},
	}
}

func uidIn(token string) string {
	claims, err := boundtoken.ParseClaims(token)
	if err != nil {
		return ""
	}
	return string(claims.Account)
}

// runUntil reconciles every account when it is due, for a duration.
func (s *simulation) runUntil(after time.Duration) {
	s.tb.Helper()
	for end := s.start.Add(after); len(s.queue) > 0 && s.queue[0].at.Before(end); {
		next := heap.Pop(&s.queue).(appointment)
		s.clock.SetTime(next.at)
		agent := s.agents[next.agent]
		result, err := agent.Reconcile(logr.NewContext(context.Background(), logr.Discard()), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: agent.HubNamespace, Name: next.name}})
		if err != nil {
			s.tb.Fatal(err)
		}
		heap.Push(&s.queue, appointment{at: next.at.Add(result.RequeueAfter), agent: next.agent, name: next.name})
	}
}

// window returns the time of the first and the last rotation.
func (s *simulation) window() (first, last time.Duration) {
	first = s.validity
	for second := range s.writes {
		if second > 0 {
			first, last = min(first, second), max(last, second)
		}
	}
	return first, last
}

// writesPerSecond returns the maximum and the mean of one second in the window.
func (s *simulation) writesPerSecond() (peak int, mean float64) {
	total := 0
	for second, n := range s.writes {
		if second > 0 {
			peak, total = max(peak, n), total+n
		}
	}
	first, last := s.window()
	return peak, float64(total) / ((last - first).Seconds() + 1)
}

func (s *simulation) report(b *testing.B) {
	peak, mean := s.writesPerSecond()
	first, last := s.window()
	b.ReportMetric(float64(peak), "peak-writes/s")
	b.ReportMetric(mean, "mean-writes/s")
	b.ReportMetric(float64(2*len(s.queue)), "writes/s-without-jitter")
	b.ReportMetric(100*first.Seconds()/s.validity.Seconds(), "first-%")
	b.ReportMetric(100*last.Seconds()/s.validity.Seconds(), "last-%")
}

// appointment is when an account is due.
type appointment struct {
	at    time.Time
	agent int
	name  string
}

// appointments are a heap, the next one first.
type appointments []appointment

func (a appointments) Len() int           { return len(a) }
func (a appointments) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a appointments) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *appointments) Push(x any)        { *a = append(*a, x.(appointment)) }
func (a *appointments) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
