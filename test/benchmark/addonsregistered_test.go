// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// registeredAddOns is how many add-ons register on each cluster.
const registeredAddOns = 3

// registered lets the agents of all clusters get certificates for three add-ons that are installed, from
// the driver in the status until the condition of the certificate. The gateway approves the requests, or
// the client in place of it; the hub's controller manager signs them.
func (a *addOnBed) registered(b *testing.B) {
	r := &registrations{bed: a, requests: newCSRTexts(b), issued: map[string]chan struct{}{}}
	for _, cluster := range a.clusters {
		as := rest.CopyConfig(a.connection)
		as.Impersonate = rest.ImpersonationConfig{UserName: clusterv1.UserPrefix + cluster + ":bench", Groups: []string{"system:masters"}}
		agent, err := client.New(as, client.Options{Scheme: a.hub.Scheme(), Mapper: a.hub.RESTMapper()})
		if err != nil {
			b.Fatal(err)
		}
		r.agents = append(r.agents, agent)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	see(ctx, &running, a.hub, &certificatesv1.CertificateSigningRequestList{}, r.see)
	peak := 0
	a.compare(b, r.install,
		func(ctx context.Context) error {
			signed := r.signed()
			err := r.all(ctx, "add-on-", leaveToGateway)
			peak = r.peak(signed)
			return err
		},
		func(ctx context.Context) error { return r.all(ctx, "bare-", r.approve) })
	b.ReportMetric(float64(peak), "peak-signings/s")
}

// approval approves a request.
type approval func(context.Context, *certificatesv1.CertificateSigningRequest) error

func leaveToGateway(context.Context, *certificatesv1.CertificateSigningRequest) error { return nil }

// registrations are agents of clusters that request certificates for add-ons.
type registrations struct {
	bed *addOnBed
	// agents are the hub for the agent of each cluster.
	agents []client.Client
	// requests have one key, because their contents are not measured.
	requests *csrTexts

	mutex sync.Mutex
	// issued is closed when a request has its certificate, and times are when. The mutex guards both.
	issued map[string]chan struct{}
	times  []time.Time
}

// install installs the add-ons, also those that the gateway leaves alone.
func (r *registrations) install(ctx context.Context) error {
	for range registeredAddOns {
		if err := r.bed.installed(ctx); err != nil {
			return err
		}
		if err := r.bed.bareInstalled(ctx); err != nil {
			return err
		}
	}
	_, err := r.bed.counts.settled(ctx)
	return err
}

// all registers the add-ons that were installed last.
func (r *registrations) all(ctx context.Context, prefix string, approve approval) error {
	ctx, cancel := context.WithTimeout(ctx, 5*patience)
	defer cancel()
	writing := make(chan struct{}, concurrency)
	group, ctx := errgroup.WithContext(ctx)
	for i, cluster := range r.bed.clusters {
		for run := r.bed.runs - registeredAddOns + 1; run <= r.bed.runs; run++ {
			group.Go(func() error {
				return r.register(ctx, r.agents[i], client.ObjectKey{Namespace: cluster, Name: fmt.Sprint(prefix, run)}, writing, approve)
			})
		}
	}
	return group.Wait()
}

// register does what the agent of a cluster does for an add-on. The channel bounds the parallel writes.
func (r *registrations) register(ctx context.Context, hub client.Client, addOn client.ObjectKey, writing chan struct{}, approve approval) error {
	var csr *certificatesv1.CertificateSigningRequest
	writing <- struct{}{}
	err := reportOn(ctx, hub, addOn, func(status *addonv1alpha1.ManagedClusterAddOnStatus) {
		status.KubeClientDriver = addonv1alpha1.DriverCSR
	})
	if err == nil {
		csr, err = r.ask(ctx, hub, addOn)
	}
	if err == nil {
		err = approve(ctx, csr)
	}
	<-writing
	if err != nil {
		return fmt.Errorf("requesting a certificate for %s: %w", addOn, err)
	}
	select {
	case <-r.certificate(csr.Name):
	case <-ctx.Done():
		return fmt.Errorf("waiting for the certificate of %s: %w", addOn, ctx.Err())
	}
	writing <- struct{}{}
	defer func() { <-writing }()
	return reportOn(ctx, hub, addOn, func(status *addonv1alpha1.ManagedClusterAddOnStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: addonv1alpha1.ConditionCertificateRotated, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonCertificateUpdated,
		})
	})
}

// reportOn changes the status of an add-on, as agents do.
func reportOn(ctx context.Context, hub client.Client, key client.ObjectKey, change func(*addonv1alpha1.ManagedClusterAddOnStatus)) error {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	if err := hub.Get(ctx, key, addOn); err != nil {
		return err
	}
	base := addOn.DeepCopy()
	change(&addOn.Status)
	// The list of conditions is replaced as a whole, so a conflicting write must be detected.
	err := hub.Status().Patch(ctx, addOn, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reportOn(ctx, hub, key, change)
	}
	return err
}

func (r *registrations) ask(ctx context.Context, hub client.Client, addOn client.ObjectKey) (*certificatesv1.CertificateSigningRequest, error) {
	group := clusterv1.UserPrefix + "cluster:" + addOn.Namespace + ":addon:" + addOn.Name
	request, err := r.requests.of(pkix.Name{CommonName: group + ":agent:" + addOn.Name + "-agent", Organization: []string{group, clusterv1.UserPrefix + "addon:" + addOn.Name}})
	if err != nil {
		return nil, err
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "addon-" + addOn.Namespace + "-" + addOn.Name + "-",
			Labels:       map[string]string{clusterv1.ClusterNameLabel: addOn.Namespace, addonv1alpha1.AddOnNameLabel: addOn.Name},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: request,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	return csr, hub.Create(ctx, csr)
}

// approve approves a request in place of the gateway.
func (r *registrations) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Benchmark",
	})
	return r.bed.hub.SubResource("approval").Update(ctx, csr)
}

// certificate returns a channel that is closed when a request has its certificate.
func (r *registrations) certificate(request string) chan struct{} {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.issuedOf(request)
}

// issuedOf is called with the mutex locked.
func (r *registrations) issuedOf(request string) chan struct{} {
	if r.issued[request] == nil {
		r.issued[request] = make(chan struct{})
	}
	return r.issued[request]
}

func (r *registrations) see(object client.Object) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok || len(csr.Status.Certificate) == 0 {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	issued := r.issuedOf(csr.Name)
	select {
	case <-issued:
	default:
		close(issued)
		r.times = append(r.times, time.Now())
	}
}

// signed is how many requests have got their certificates.
func (r *registrations) signed() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.times)
}

// peak is the largest number of certificates within a second, without the first ones.
func (r *registrations) peak(first int) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	most, times := 0, r.times[first:]
	for i, from := range times {
		within, _ := slices.BinarySearchFunc(times, from.Add(time.Second), time.Time.Compare)
		most = max(most, within-i)
	}
	return most
}
