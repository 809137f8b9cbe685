// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// inResume labels the ConfigMaps of these specs.
const inResume = "resume"

// withoutBookmarks watches like a client that ignores bookmarks, for a second or two at a time.
// Each watch resumes from the object of the last event.
type withoutBookmarks struct {
	of typedcorev1.ConfigMapInterface

	mu   sync.Mutex // guards from
	from []string
}

// WatchWithContext watches from a resourceVersion.
func (w *withoutBookmarks) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w.mu.Lock()
	w.from = append(w.from, options.ResourceVersion)
	w.mu.Unlock()
	options.AllowWatchBookmarks, options.LabelSelector, options.TimeoutSeconds = false, inResume, ptr.To[int64](1)
	return w.of.Watch(ctx, options)
}

func (w *withoutBookmarks) begun() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.from
}

// resumable returns a ConfigMap of these specs.
func resumable(name string) *corev1.ConfigMap {
	of := build.ConfigMap(namespace, name, "a", "b")
	of.Labels = map[string]string{inResume: "true"}
	return of
}

// removeResumed removes them from the members when the spec ends.
func removeResumed() {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		for _, member := range members {
			Expect(on[member].DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace), client.HasLabels{inResume})).To(Succeed())
		}
	})
}

// comeAndGo creates and deletes objects on every member, some during each of several watches, and
// returns the expected events. When a watch returns, the next one has begun.
func comeAndGo(ctx context.Context, watches int, another func()) (events []string) {
	GinkgoHelper()
	for n := range watches {
		for _, member := range members {
			for _, name := range []string{"x", "y", "z"} {
				of := resumable(fmt.Sprint("resumed-", n, name))
				expect.Created(ctx, on[member], of)
				Expect(on[member].Delete(ctx, of)).To(Succeed())
				events = append(events, "ADDED "+member+"/"+of.Name, "DELETED "+member+"/"+of.Name)
			}
		}
		if n+1 < watches {
			another()
		}
	}
	return events
}

var _ = Describe("A watch that resumes from its last event", func() {
	var configMaps typedcorev1.ConfigMapInterface
	BeforeEach(func(ctx SpecContext) {
		configMaps = viewOf(ctx, "all").CoreV1().ConfigMaps(namespace)
		removeResumed()
	})

	It("gets each event of every member once at the same gateway", func(ctx SpecContext) {
		list, err := configMaps.List(ctx, metav1.ListOptions{LabelSelector: inResume})
		Expect(err).NotTo(HaveOccurred())
		client := &withoutBookmarks{of: configMaps}
		watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, client)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watcher.Stop)
		told := make(chan []string)
		const watches = 4
		go func() {
			var all []string
			for event := range watcher.ResultChan() {
				of, ok := event.Object.(*corev1.ConfigMap)
				if !ok {
					all = append(all, fmt.Sprintf("%s: %v", event.Type, event.Object))
					break
				}
				all = append(all, fmt.Sprint(event.Type, " ", of.Labels[viewv1alpha1.LabelMember], "/", of.Name))
				if len(all) == 2*3*watches*len(members) {
					break
				}
			}
			told <- all
		}()
		want := comeAndGo(ctx, watches, func() {
			before := len(client.begun())
			Eventually(client.begun).Should(WithTransform(func(all []string) int { return len(all) }, BeNumerically(">", before)))
		})
		Eventually(told).Should(Receive(ConsistOf(want)))
		begun := client.begun()
		Expect(len(begun)).To(BeNumerically(">=", watches))
		before := uint64(0)
		for _, version := range begun[len(begun)-2:] {
			number, err := strconv.ParseUint(version, 10, 63)
			Expect(err).NotTo(HaveOccurred(), "the watch did not resume from an event")
			Expect(number).To(BeNumerically(">=", before))
			before = number
		}
	})

	It("lists again when it reaches another gateway", func(ctx SpecContext) {
		list, err := configMaps.List(ctx, metav1.ListOptions{LabelSelector: inResume})
		Expect(err).NotTo(HaveOccurred())
		options := metav1.ListOptions{LabelSelector: inResume, ResourceVersion: list.ResourceVersion}
		w, err := configMaps.Watch(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		expect.Created(ctx, on[first], resumable("before"))
		var event watch.Event
		Eventually(w.ResultChan()).Should(Receive(&event))
		last := options
		last.ResourceVersion = event.Object.(*corev1.ConfigMap).ResourceVersion
		w, err = configMaps.Watch(ctx, last)
		Expect(err).NotTo(HaveOccurred(), "another gateway answers from now on")
		w.Stop()

		Expect(running.Gateway.Kill()).To(Succeed())
		Expect(running.Gateway.Start(ctx)).To(Succeed())
		Expect(running.AwaitAnswers(ctx, time.Minute)).To(Succeed())
		Eventually(func() error {
			w, err := configMaps.Watch(ctx, options)
			if err == nil {
				w.Stop()
			}
			return err
		}).Should(Succeed(), "every gateway accepts the version of a list")
		_, err = configMaps.Watch(ctx, last)
		Expect(apierrors.IsResourceExpired(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("is not the version of an event that this gateway remembers: list again")))
	})
})
