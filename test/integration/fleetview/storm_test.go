// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// inStorm labels the ConfigMaps of a storm, inView the members of its view.
const (
	inStorm = "storm"
	inView  = "stage=storm"
)

var members = []string{first, second}

// show adds a member to the storm's view or removes it.
func show(ctx context.Context, member string, shown bool) {
	GinkgoHelper()
	value := `null`
	if shown {
		value = `"storm"`
	}
	patch := expect.MergePatch(fmt.Sprintf(`{"metadata": {"labels": {"stage": %s}}}`, value))
	Expect(hubClient.Patch(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(member)}, patch)).To(Succeed())
}

// stormBed adds both members to the view and removes the storm's ConfigMaps at the end.
func stormBed(ctx context.Context) {
	GinkgoHelper()
	for _, member := range members {
		show(ctx, member, true)
	}
	jane := someone(ctx, "jane", team)
	DeferCleanup(func(ctx SpecContext) {
		Expect(running.AwaitAnswers(ctx, time.Minute)).To(Succeed())
		Eventually(func() error {
			_, _, err := jane.tries(ctx, "-n", namespace, "get", "pods")
			return err
		}).Should(Succeed(), "the hub needs some time to notice the gateway")
		for _, member := range members {
			show(ctx, member, false)
			Expect(on[member].DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace), client.HasLabels{inStorm})).To(Succeed())
		}
	})
}

// stormy returns a ConfigMap of a storm.
func stormy(name, value string) *corev1.ConfigMap {
	made := build.ConfigMap(namespace, name, "n", value)
	made.Labels = map[string]string{inStorm: "true"}
	return made
}

// informed runs an informer of the storm's ConfigMaps and counts its events.
type informed struct {
	store                   cache.Store
	added, changed, deleted atomic.Int64
}

func inform(ctx context.Context, clientset kubernetes.Interface) *informed {
	GinkgoHelper()
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = inStorm }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	i := &informed{store: informer.GetStore()}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { i.added.Add(1) }, UpdateFunc: func(any, any) { i.changed.Add(1) }, DeleteFunc: func(any) { i.deleted.Add(1) },
	})
	Expect(err).NotTo(HaveOccurred())
	informing, stop := context.WithCancel(context.WithoutCancel(ctx))
	factory.StartWithContext(informing)
	DeferCleanup(func() {
		stop()
		factory.Shutdown()
	})
	return i
}

// known returns the contents of the informer.
func (i *informed) known() map[string]string {
	known := map[string]string{}
	for _, object := range i.store.List() {
		of := object.(*corev1.ConfigMap)
		known[of.Name] = of.Data["n"]
	}
	return known
}

// weather performs the random actions of a storm and knows the expected state.
type weather struct {
	random *rand.Rand
	made   map[string][]string
	shown  map[string]bool
	next   int
}

func newWeather() *weather {
	seed := uint64(GinkgoRandomSeed())
	return &weather{random: rand.New(rand.NewPCG(seed, seed)), made: map[string][]string{}, shown: map[string]bool{first: true, second: true}}
}

// blow performs one action: change an object, add or remove a member, cut it off, or kill the
// gateway.
func (w *weather) blow(ctx context.Context) {
	GinkgoHelper()
	member := members[w.random.IntN(len(members))]
	names := w.made[member]
	w.next++
	switch what := w.random.IntN(20); {
	case what < 8 || len(names) == 0:
		name := fmt.Sprint("storm-", w.next)
		expect.Created(ctx, on[member], stormy(name, "0"))
		w.made[member] = append(names, name)
	case what < 12:
		Expect(on[member].Update(ctx, stormy(names[w.random.IntN(len(names))], fmt.Sprint(w.next)))).To(Succeed())
	case what < 15:
		at := w.random.IntN(len(names))
		Expect(on[member].Delete(ctx, stormy(names[at], ""))).To(Succeed())
		w.made[member] = slices.Delete(names, at, at+1)
	case what < 17:
		// Keep one member: a view without members is rejected, and an informer keeps its contents.
		w.shown[second] = !w.shown[second]
		show(ctx, second, w.shown[second])
	case what < 19:
		By("cutting " + member + " off")
		agent := fleetAgent(member)
		Expect(agent.Kill()).To(Succeed())
		Expect(agent.Start(ctx)).To(Succeed())
	default:
		By("killing the gateway")
		Expect(running.Gateway.Kill()).To(Succeed())
		Expect(running.Gateway.Start(ctx)).To(Succeed())
	}
}

// there returns the objects of the view's members under their qualified names.
func (w *weather) there(ctx context.Context) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, member := range members {
		if !w.shown[member] {
			continue
		}
		var list corev1.ConfigMapList
		Expect(on[member].List(ctx, &list, client.InNamespace(namespace), client.HasLabels{inStorm})).To(Succeed())
		for _, of := range list.Items {
			all[member+"."+of.Name] = of.Data["n"]
		}
	}
	return all
}

var _ = Describe("An informer in a storm", func() {
	rages := func(ctx SpecContext, goesOn func(gusts int) bool) {
		stormBed(ctx)
		config, err := clientcmd.BuildConfigFromFlags("", someone(ctx, "jane", team, "qualified:"+inView).fleet)
		Expect(err).NotTo(HaveOccurred())
		clientset, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		w, i := newWeather(), inform(ctx, clientset)
		for gusts := 0; goesOn(gusts); gusts++ {
			w.blow(ctx)
			if gusts%10 == 9 {
				Eventually(i.known).Should(Equal(w.there(ctx)))
			}
		}
		for _, member := range members {
			w.shown[member] = true
			show(ctx, member, true)
		}
		Eventually(i.known).Should(Equal(w.there(ctx)))
		GinkgoWriter.Printf("%d times added, %d changed, %d deleted\n", i.added.Load(), i.changed.Load(), i.deleted.Load())
		Expect(i.added.Load() - i.deleted.Load()).To(BeEquivalentTo(len(i.store.List())))
	}

	It("ends with exactly the members' objects", func(ctx SpecContext) {
		rages(ctx, func(gusts int) bool { return gusts < 30 })
	})

	It("ends with exactly the members' objects after ten minutes", Label("matrix"), SpecTimeout(15*time.Minute), func(ctx SpecContext) {
		until := time.Now().Add(10 * time.Minute)
		rages(ctx, func(int) bool { return time.Now().Before(until) })
	})
})

// warned collects the warnings of one reader's response.
type warned struct {
	mu    sync.Mutex // guards texts
	texts []string
}

// HandleWarningHeader records one warning.
func (w *warned) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warned) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.texts, "\n")
	w.texts = nil
	return all
}

// cuts counts starts and ends of disruptions, in which the gateway is killed and members reconnect.
// It is odd during one.
type cuts struct{ atomic.Int64 }

// was reports whether there was a disruption since the count was taken.
func (c *cuts) was(since int64) bool { return since%2 == 1 || c.Load() != since }

// reader lists the storm's ConfigMaps until its context ends and returns the first wrong response.
// A response must name every missing member. The first member is missing only when it was
// disconnected from the gateway. Half of the readers use pages.
func reader(ctx context.Context, config *rest.Config, pages bool, every map[string]bool, answers *atomic.Int64, gateway *cuts) error {
	warnings := &warned{}
	config = rest.CopyConfig(config)
	config.WarningHandler, config.QPS = warnings, -1
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		since := gateway.Load()
		got, said, err := readOnce(ctx, clientset, pages, warnings)
		if err != nil {
			continue // The gateway is being killed or unavailable.
		}
		answers.Add(1)
		for row := range got {
			if !every[row] {
				return fmt.Errorf("a response has %s, which no member had", row)
			}
		}
		for row := range every {
			member, _, _ := strings.Cut(row, "/")
			if !got[row] && (!strings.Contains(said, member) || member == first && !gateway.was(since)) {
				return fmt.Errorf("a response of %d rows lacks %s and its warnings are only %q", len(got), row, said)
			}
		}
	}
	return nil
}

// readOnce reads a whole list.
func readOnce(ctx context.Context, clientset kubernetes.Interface, pages bool, warnings *warned) (rows map[string]bool, said string, err error) {
	rows, options := map[string]bool{}, metav1.ListOptions{LabelSelector: inStorm}
	if pages {
		options.Limit = 7
	}
	warnings.take()
	for {
		list, err := clientset.CoreV1().ConfigMaps(namespace).List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		for _, of := range list.Items {
			rows[of.Labels[viewv1alpha1.LabelMember]+"/"+of.Name] = true
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return rows, warnings.take(), nil
		}
	}
}

var _ = Describe("Readers in a storm", func() {
	rage := func(ctx SpecContext, readers int, goesOn func(gusts int) bool) {
		stormBed(ctx)
		every := map[string]bool{}
		for _, member := range members {
			for n := range 20 {
				name := fmt.Sprint("fixed-", n)
				expect.Created(ctx, on[member], stormy(name, "0"))
				every[member+"/"+name] = true
			}
		}
		config, err := clientcmd.BuildConfigFromFlags("", someone(ctx, "jane", team, "all").fleet)
		Expect(err).NotTo(HaveOccurred())
		looking, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		reading, stop := context.WithCancel(ctx)
		defer stop()
		var (
			answers atomic.Int64
			gateway cuts
		)
		wrong := make(chan error, readers)
		for n := range readers {
			go func() { wrong <- reader(reading, config, n%2 == 1, maps.Clone(every), &answers, &gateway) }()
		}
		allAnswered := func() {
			GinkgoHelper()
			before := answers.Load()
			Eventually(func() (int64, error) {
				select {
				case err := <-wrong:
					return 0, StopTrying("a reader has ended").Wrap(err)
				default:
					return answers.Load(), nil
				}
			}).Should(BeNumerically(">", before+int64(readers)), "no reader gets a response")
		}
		for gusts := 0; goesOn(gusts); gusts++ {
			allAnswered()
			if gusts%3 == 2 {
				gateway.Add(1)
				Expect(running.Gateway.Kill()).To(Succeed())
				Expect(running.Gateway.Start(ctx)).To(Succeed())
				Eventually(func() (map[string]bool, error) {
					got, _, err := readOnce(ctx, looking, false, &warned{})
					return got, err
				}).Should(Equal(every), "members reconnect")
				gateway.Add(1)
				continue
			}
			agent := fleetAgent(second)
			Expect(agent.Kill()).To(Succeed())
			allAnswered()
			Expect(agent.Start(ctx)).To(Succeed())
		}
		stop()
		for range readers {
			Eventually(wrong).Should(Receive(BeNil()))
		}
		GinkgoWriter.Printf("%d answers\n", answers.Load())
	}

	It("get no row that no member had, and all rows of connected members", func(ctx SpecContext) {
		rage(ctx, 8, func(gusts int) bool { return gusts < 3 })
	})

	It("get no row that no member had, and all rows of connected members, as fifty readers for five minutes", Label("matrix"), SpecTimeout(10*time.Minute), func(ctx SpecContext) {
		until := time.Now().Add(5 * time.Minute)
		rage(ctx, 50, func(int) bool { return time.Now().Before(until) })
	})
})
