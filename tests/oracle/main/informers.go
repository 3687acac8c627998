package main

// Informers over fixed lists: handlers get their objects at once, in the order of the request. The scheduler builds its
// cache, queue and plugins on them as on those that list and watch.

import (
	"context"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// kinds are all that a snapshot may hold.
var kinds = []runtime.Object{
	&corev1.Node{}, &corev1.Pod{}, &corev1.Namespace{}, &corev1.Service{}, &corev1.ReplicationController{},
	&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{},
	&appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
	&storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.CSIDriver{}, &storagev1.CSIStorageCapacity{},
	&storagev1.VolumeAttachment{},
	&policyv1.PodDisruptionBudget{},
	&schedulingv1.PriorityClass{}, &nodev1.RuntimeClass{},
	&resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{},
}

// client reaches nothing: what is evaluated writes nothing.
var client = kubernetes.NewForConfigOrDie(&rest.Config{Host: "http://127.0.0.1:1", Timeout: time.Second})

// fixed is an informer whose objects are given.
type fixed struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	handlers []cache.ResourceEventHandler
	order    []any
}

// factory hands out fixed informers for all kinds, filled with the objects.
func newFactory(objects []runtime.Object) (informers.SharedInformerFactory, map[reflect.Type]*fixed) {
	factory := informers.NewSharedInformerFactory(client, 0)
	byType := map[reflect.Type]*fixed{}
	for _, kind := range kinds {
		informer := &fixed{indexer: cache.NewIndexer(
			cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
		byType[reflect.TypeOf(kind)] = informer
		factory.InformerFor(kind, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer })
	}
	for _, object := range objects {
		byType[reflect.TypeOf(object)].add(object)
	}
	return factory, byType
}

// add stores an object and tells the handlers.
func (f *fixed) add(object any) {
	if err := f.indexer.Add(object); err != nil {
		panic(err)
	}
	f.order = append(f.order, object)
	for _, handler := range f.handlers {
		handler.OnAdd(object, false)
	}
}

func (f *fixed) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handlers = append(f.handlers, handler)
	for _, object := range f.order {
		handler.OnAdd(object, true)
	}
	return registration{}, nil
}

func (f *fixed) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *fixed) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *fixed) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (f *fixed) GetStore() cache.Store                                           { return f.indexer }
func (f *fixed) GetIndexer() cache.Indexer                                       { return f.indexer }
func (f *fixed) AddIndexers(indexers cache.Indexers) error                       { return f.indexer.AddIndexers(indexers) }
func (f *fixed) Run(<-chan struct{})                                             {}
func (f *fixed) RunWithContext(context.Context)                                  {}
func (f *fixed) HasSynced() bool                                                 { return true }
func (f *fixed) HasSyncedChecker() cache.DoneChecker                             { return synced{} }
func (f *fixed) LastSyncResourceVersion() string                                 { return "1" }
func (f *fixed) SetTransform(cache.TransformFunc) error                          { return nil }
func (f *fixed) IsStopped() bool                                                 { return false }

type registration struct{}

func (registration) HasSynced() bool                     { return true }
func (registration) HasSyncedChecker() cache.DoneChecker { return synced{} }

var closed = func() chan struct{} { done := make(chan struct{}); close(done); return done }()

type synced struct{}

func (synced) Name() string          { return "fixed" }
func (synced) Done() <-chan struct{} { return closed }
